import java.net.URI;
import java.util.List;
import java.util.Map;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.core.SdkBytes;
import software.amazon.awssdk.http.urlconnection.UrlConnectionHttpClient;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.lambda.LambdaClient;
import software.amazon.awssdk.services.lambda.model.InvocationType;
import software.amazon.awssdk.services.lambda.model.ResourceNotFoundException;
import software.amazon.awssdk.services.sns.SnsClient;
import software.amazon.awssdk.services.sqs.SqsClient;
import software.amazon.awssdk.services.sqs.model.Message;
import software.amazon.awssdk.services.sqs.model.MessageAttributeValue;
import software.amazon.awssdk.services.sqs.model.QueueAttributeName;
import software.amazon.awssdk.services.sqs.model.QueueDoesNotExistException;
import software.amazon.awssdk.services.sqs.model.SendMessageBatchRequestEntry;

/** Amazon's SDK, version 2, at a server: Client URL FUNCTION. One line says what came of each call. */
public class Client {
  public static void main(String[] given) {
    URI url = URI.create(given[0]);
    var keys = StaticCredentialsProvider.create(AwsBasicCredentials.create("000000000000", "secret"));
    var http = UrlConnectionHttpClient.create();
    var sqs = SqsClient.builder().endpointOverride(url).region(Region.US_EAST_1).credentialsProvider(keys).httpClient(http).build();
    var sns = SnsClient.builder().endpointOverride(url).region(Region.US_EAST_1).credentialsProvider(keys).httpClient(http).build();
    var lambda = LambdaClient.builder().endpointOverride(url).region(Region.US_EAST_1).credentialsProvider(keys).httpClient(http).build();

    String queue = sqs.createQueue(call -> call.queueName("java")).queueUrl();
    sqs.sendMessage(call -> call.queueUrl(queue).messageBody("한국어 日本語").messageAttributes(
        Map.of("n", MessageAttributeValue.builder().dataType("Number").stringValue("7").build())));
    Message message = sqs.receiveMessage(call -> call.queueUrl(queue).messageAttributeNames("All")).messages().get(0);
    System.out.println("received " + message.body() + " " + message.messageAttributes().get("n").stringValue());
    sqs.deleteMessage(call -> call.queueUrl(queue).receiptHandle(message.receiptHandle()));
    var entries = List.of(
        SendMessageBatchRequestEntry.builder().id("1").messageBody("one").build(),
        SendMessageBatchRequestEntry.builder().id("2").messageBody("two").build());
    System.out.println("sent " + sqs.sendMessageBatch(call -> call.queueUrl(queue).entries(entries)).successful().size());
    sqs.purgeQueue(call -> call.queueUrl(queue));
    try {
      sqs.getQueueUrl(call -> call.queueName("nowhere"));
    } catch (QueueDoesNotExistException refusal) {
      System.out.println("refused " + refusal.statusCode());
    }

    String topic = sns.createTopic(call -> call.name("java")).topicArn();
    String arn = sqs.getQueueAttributes(call -> call.queueUrl(queue).attributeNames(QueueAttributeName.QUEUE_ARN))
        .attributes().get(QueueAttributeName.QUEUE_ARN);
    sns.subscribe(call -> call.topicArn(topic).protocol("sqs").endpoint(arn).attributes(Map.of("RawMessageDelivery", "true")));
    sns.publish(call -> call.topicArn(topic).message("published"));
    Message notification = sqs.receiveMessage(call -> call.queueUrl(queue).waitTimeSeconds(5)).messages().get(0);
    System.out.println("notified " + notification.body());

    var answer = lambda.invoke(call -> call.functionName(given[1]).payload(SdkBytes.fromUtf8String("{\"car\":1}")));
    System.out.println("invoked " + answer.statusCode() + " " + answer.payload().asUtf8String());
    var taken = lambda.invoke(call -> call.functionName(given[1]).invocationType(InvocationType.EVENT)
        .payload(SdkBytes.fromUtf8String("{\"car\":2}")));
    System.out.println("taken " + taken.statusCode());
    try {
      lambda.getFunction(call -> call.functionName("nowhere"));
    } catch (ResourceNotFoundException refusal) {
      System.out.println("refused " + refusal.statusCode());
    }
  }
}
