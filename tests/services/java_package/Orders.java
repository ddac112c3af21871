import com.amazonaws.services.lambda.runtime.Context;
import com.amazonaws.services.lambda.runtime.RequestStreamHandler;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** A function: keeps each event as a line of the file that FILE names, and answers {"got": event}. */
public class Orders implements RequestStreamHandler {
  @Override
  public void handleRequest(InputStream input, OutputStream output, Context context) throws IOException {
    String event = new String(input.readAllBytes());
    if (event.contains("\"fail\"")) {
      throw new IllegalStateException("told to");
    }
    Path file = Path.of(System.getenv("FILE"));
    Files.writeString(file, event + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    output.write(("{\"got\":" + event + "}").getBytes());
  }
}
