exports.promised = async (event, context) => ({ event, name: context.functionName });
exports.calledBack = (event, context, done) => done(null, event * 2);
exports.fails = async () => { throw new TypeError('no'); };
exports.streams = awslambda.streamifyResponse(async (event, out) => {
  out.write('a');
  out.write('b');
  out.end();
});
exports.logs = async () => {
  console.log('two\nlines');
};
exports.breaks = awslambda.streamifyResponse(async (event, out) => {
  out.write('a');
  throw new Error('broken');
});
