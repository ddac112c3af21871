"""Code that stands in a template: the file it becomes, and the module beside it by which custom resources answer."""

from typing import Final

_PYTHON: Final = '''"""Answers CloudFormation on behalf of a custom resource."""

import json
import urllib.request

SUCCESS = "SUCCESS"
FAILED = "FAILED"


def send(event, context, responseStatus, responseData, physicalResourceId=None, noEcho=False, reason=None):
    body = json.dumps(
        {
            "Status": responseStatus,
            "Reason": reason or f"See the details in CloudWatch Log Stream: {context.log_stream_name}",
            "PhysicalResourceId": physicalResourceId or context.log_stream_name,
            "StackId": event["StackId"],
            "RequestId": event["RequestId"],
            "LogicalResourceId": event["LogicalResourceId"],
            "NoEcho": noEcho,
            "Data": responseData,
        }
    ).encode()
    request = urllib.request.Request(event["ResponseURL"], data=body, headers={"Content-Type": ""}, method="PUT")
    with urllib.request.urlopen(request, timeout=30) as answer:
        print("Status code:", answer.status)
'''
_NODE: Final = """exports.SUCCESS = "SUCCESS";
exports.FAILED = "FAILED";
exports.send = function (event, context, responseStatus, responseData, physicalResourceId, noEcho) {
  return new Promise((resolve, reject) => {
    const body = JSON.stringify({
      Status: responseStatus,
      Reason: "See the details in CloudWatch Log Stream: " + context.logStreamName,
      PhysicalResourceId: physicalResourceId || context.logStreamName,
      StackId: event.StackId,
      RequestId: event.RequestId,
      LogicalResourceId: event.LogicalResourceId,
      NoEcho: noEcho || false,
      Data: responseData,
    });
    const url = new URL(event.ResponseURL);
    const library = require(url.protocol === "https:" ? "https" : "http");
    const headers = { "content-type": "", "content-length": Buffer.byteLength(body) };
    const request = library.request(url, { method: "PUT", headers }, (answer) => {
      answer.resume();
      answer.on("end", () => { resolve(); context.done && context.done(); });
    });
    request.on("error", (error) => { reject(error); context.done && context.done(error); });
    request.end(body);
  });
};
"""


def file_name(runtime: str) -> str:
    """The name of the file: a handler is written `index.handler`."""
    return (
        "index.js"
        if runtime.startswith("nodejs")
        else "index.py"
        if runtime.startswith("python")
        else "index"
    )


def response_modules(runtime: str) -> list[tuple[str, str]]:
    """The files beside it, which AWS adds as well."""
    if runtime.startswith("python"):
        return [("cfnresponse.py", _PYTHON)]
    return [("cfn-response.js", _NODE)] if runtime.startswith("nodejs") else []
