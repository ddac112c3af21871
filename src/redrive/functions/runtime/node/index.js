// The Runtime API's client for functions in Node: loads the handler that _HANDLER names, and calls it for each event.
'use strict';

const fs = require('node:fs');
const http = require('node:http');
const path = require('node:path');
const util = require('node:util');
const { pathToFileURL } = require('node:url');

const [host, port] = process.env.AWS_LAMBDA_RUNTIME_API.split(':');
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
const STREAMING = Symbol.for('aws.lambda.runtime.handler.streaming');
let requestId = '';

class RuntimeError extends Error {
  constructor(type, message) {
    super(message);
    this.name = type;
  }
}

function call(method, target, body, headers = {}) {
  return new Promise((resolve, reject) => {
    const sent = body === undefined ? {} : { 'Content-Length': Buffer.byteLength(body) };
    const options = { host, port, agent, method, path: `/2018-06-01/runtime/${target}`, headers: { ...headers, ...sent } };
    const request = http.request(options, (response) => {
      const parts = [];
      response.on('data', (part) => parts.push(part));
      response.on('end', () => resolve({ headers: response.headers, body: Buffer.concat(parts) }));
      response.on('error', reject);
    });
    request.on('error', reject);
    request.end(body);
  });
}

// ---- the handler -----------------------------------------------------------------------------------------

function isModule(file) {
  for (let folder = path.dirname(file); ; folder = path.dirname(folder)) {
    const description = path.join(folder, 'package.json');
    if (fs.existsSync(description)) return JSON.parse(fs.readFileSync(description, 'utf8')).type === 'module';
    if (folder === path.dirname(folder)) return false;
  }
}

async function loaded(name) {
  const base = path.resolve(process.env.LAMBDA_TASK_ROOT, name);
  for (const file of [base, `${base}.js`]) {
    if (fs.existsSync(file) && fs.statSync(file).isFile()) {
      return isModule(file) ? import(pathToFileURL(file)) : require(file);
    }
  }
  if (fs.existsSync(`${base}.mjs`)) return import(pathToFileURL(`${base}.mjs`));
  if (fs.existsSync(`${base}.cjs`)) return require(`${base}.cjs`);
  return require(require.resolve(name, { paths: [process.env.LAMBDA_TASK_ROOT, ...(process.env.NODE_PATH || '').split(':')] }));
}

async function handlerNamed(text) {
  const matched = /^((?:.*\/)?[^/.]*)\.(.+)$/.exec(text);
  if (!matched || text.includes('..')) throw new RuntimeError('Runtime.MalformedHandlerName', 'Bad handler');
  let found;
  try {
    found = await loaded(matched[1]);
  } catch (error) {
    if (error instanceof SyntaxError) throw new RuntimeError('Runtime.UserCodeSyntaxError', `SyntaxError: ${error.message}`);
    if (error.code === 'MODULE_NOT_FOUND' || error.code === 'ERR_MODULE_NOT_FOUND') {
      throw new RuntimeError('Runtime.ImportModuleError', `Error: ${error.message}`);
    }
    throw error;
  }
  for (const name of matched[2].split('.')) found = found === undefined ? undefined : (found[name] ?? found.default?.[name]);
  if (found === undefined) throw new RuntimeError('Runtime.HandlerNotFound', `${text} is undefined or not exported`);
  if (typeof found !== 'function') throw new RuntimeError('Runtime.HandlerNotFound', `${text} is not a function`);
  return found;
}

globalThis.awslambda = {
  streamifyResponse(handler, options) {
    handler[STREAMING] = 'response';
    handler.highWaterMark = options && options.highWaterMark;
    return handler;
  },
  HttpResponseStream: {
    from(stream, prelude) {
      stream.setContentType('application/vnd.awslambda.http-integration-response');
      stream.write(JSON.stringify(prelude));
      stream.write(Buffer.alloc(8));
      return stream;
    },
  },
};

// ---- one invocation --------------------------------------------------------------------------------------

function contextOf(headers) {
  const deadline = Number(headers['lambda-runtime-deadline-ms']);
  const text = headers['lambda-runtime-client-context'];
  return {
    callbackWaitsForEmptyEventLoop: true,
    awsRequestId: headers['lambda-runtime-aws-request-id'],
    invokedFunctionArn: headers['lambda-runtime-invoked-function-arn'],
    functionName: process.env.AWS_LAMBDA_FUNCTION_NAME,
    functionVersion: process.env.AWS_LAMBDA_FUNCTION_VERSION,
    memoryLimitInMB: process.env.AWS_LAMBDA_FUNCTION_MEMORY_SIZE,
    logGroupName: process.env.AWS_LAMBDA_LOG_GROUP_NAME,
    logStreamName: process.env.AWS_LAMBDA_LOG_STREAM_NAME,
    clientContext: text ? JSON.parse(text) : undefined,
    getRemainingTimeInMillis: () => deadline - Date.now(),
  };
}

function described(error) {
  const isError = error instanceof Error || util.types.isNativeError(error);
  const shown = isError
    ? { errorType: error.name, errorMessage: error.message, trace: (error.stack || '').split('\n') }
    : { errorType: typeof error, errorMessage: String(error), trace: [] };
  return JSON.stringify(shown).replace(/\x7f/g, '%7F');
}

function answered(handler, event, context) {
  return new Promise((resolve, reject) => {
    const settle = (error, value) => {
      const done = () => (error === null || error === undefined ? resolve(value) : reject(error));
      if (context.callbackWaitsForEmptyEventLoop) process.once('beforeExit', done);
      else setImmediate(done);
    };
    context.done = settle;
    context.succeed = (value) => settle(null, value);
    context.fail = (error) => settle(error === undefined || error === null ? 'handled' : error);
    const returned = handler(event, context, settle);
    if (returned && typeof returned.then === 'function') returned.then(resolve, reject);
  });
}

// A streamed answer is posted while the handler writes it; an error in the middle follows as trailers.
function streamed(handler, event, context) {
  return new Promise((resolve, reject) => {
    const headers = {
      'Lambda-Runtime-Function-Response-Mode': 'streaming',
      Trailer: 'Lambda-Runtime-Function-Error-Type, Lambda-Runtime-Function-Error-Body',
      'Content-Type': 'application/octet-stream',
    };
    const target = `/2018-06-01/runtime/invocation/${requestId}/response`;
    const request = http.request({ host, port, agent, method: 'POST', path: target, headers }, (response) => {
      response.resume();
      response.on('end', resolve);
    });
    request.on('error', reject);
    request.setContentType = (type) => request.setHeader('Content-Type', type);
    Promise.resolve(handler(event, request, context)).then(
      () => request.writableEnded || request.end(),
      (error) => {
        const body = Buffer.from(described(error)).toString('base64');
        request.addTrailers({
          'Lambda-Runtime-Function-Error-Type': error.name || 'Error',
          'Lambda-Runtime-Function-Error-Body': body,
        });
        request.end();
      },
    );
  });
}

function report(error) {
  console.error('Invoke Error', described(error));
}

async function serve(handler) {
  for (;;) {
    const { headers, body } = await call('GET', 'invocation/next');
    requestId = headers['lambda-runtime-aws-request-id'];
    const trace = headers['lambda-runtime-trace-id'];
    if (trace) process.env._X_AMZN_TRACE_ID = trace;
    else delete process.env._X_AMZN_TRACE_ID;
    const context = contextOf(headers);
    if (handler[STREAMING]) {
      await streamed(handler, JSON.parse(body.toString()), context);
      continue;
    }
    try {
      const value = await answered(handler, JSON.parse(body.toString()), context);
      const text = JSON.stringify(value === undefined ? null : value);
      await call('POST', `invocation/${requestId}/response`, text, { 'Content-Type': 'application/json' });
    } catch (error) {
      report(error);
      const type = error instanceof Error ? error.name : typeof error;
      await call('POST', `invocation/${requestId}/error`, described(error), { 'Lambda-Runtime-Function-Error-Type': type });
    }
  }
}

// ---- the process -----------------------------------------------------------------------------------------

for (const [name, level] of [['log', 'INFO'], ['info', 'INFO'], ['debug', 'DEBUG'], ['warn', 'WARN'], ['error', 'ERROR'], ['trace', 'TRACE']]) {
  console[name] = (...parts) => {
    const text = util.format(...parts).replace(/\n/g, '\r');
    process.stdout.write(`${new Date().toISOString()}\t${requestId || 'undefined'}\t${level}\t${text}\n`);
  };
}

async function fail(error, type, status) {
  console.error(type, described(error));
  const target = requestId ? `invocation/${requestId}/error` : 'init/error';
  const body = described(type === 'Runtime.UnhandledPromiseRejection' ? new RuntimeError(type, String(error)) : error);
  await call('POST', target, body, { 'Lambda-Runtime-Function-Error-Type': type }).catch(() => {});
  process.exit(status);
}

process.on('uncaughtException', (error) => fail(error, error.name || 'Error', 129));
process.on('unhandledRejection', (error) => fail(error, 'Runtime.UnhandledPromiseRejection', 128));

handlerNamed(process.env._HANDLER || '').then(serve, (error) => fail(error, error.name || 'Error', 1));
