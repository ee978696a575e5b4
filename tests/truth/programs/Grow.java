// Grow WHAT: which of the JVM's own limits is reached.
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

public class Grow {
  static final List<Object> kept = new ArrayList<>();

  public static void main(String[] words) throws Exception {
    switch (words[0]) {
      case "heap": while (true) kept.add(new byte[1 << 20]);
      case "direct": while (true) kept.add(ByteBuffer.allocateDirect(8 << 20));
      case "array": kept.add(new long[Integer.MAX_VALUE]); break;
      case "caught":
        try { while (true) kept.add(new byte[1 << 20]); } catch (OutOfMemoryError e) { kept.clear(); }
        System.out.println("recovered");
        break;
      case "threads": while (true) { Thread t = new Thread(() -> { try { Thread.sleep(9000); } catch (Exception e) {} }); t.start(); }
      case "exit": System.exit(7);
      case "exception": throw new IllegalStateException("a bug");
    }
  }
}
