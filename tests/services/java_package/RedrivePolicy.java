import com.amazonaws.client.builder.AwsClientBuilder.EndpointConfiguration;
import com.amazonaws.services.sns.AmazonSNS;
import com.amazonaws.services.sns.AmazonSNSClientBuilder;
import com.amazonaws.services.sns.model.SetSubscriptionAttributesRequest;

/** Amazon's SDK, version 1, as AWS's article on dead-letter queues has it: RedrivePolicy URL SUBSCRIPTION QUEUE. */
public class RedrivePolicy {
  public static void main(String[] given) {
    AmazonSNS sns = AmazonSNSClientBuilder.standard().withEndpointConfiguration(new EndpointConfiguration(given[0], "us-east-1")).build();

    String subscriptionArn = given[1];

    String redrivePolicy = "{\"deadLetterTargetArn\":\"" + given[2] + "\"}";

    SetSubscriptionAttributesRequest request = new SetSubscriptionAttributesRequest(
      subscriptionArn,
      "RedrivePolicy",
      redrivePolicy
    );

    sns.setSubscriptionAttributes(request);
    System.out.println(sns.getSubscriptionAttributes(subscriptionArn).getAttributes().get("RedrivePolicy"));
  }
}
