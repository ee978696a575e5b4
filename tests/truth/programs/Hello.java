public class Hello {
  public static void main(String[] words) { System.out.println("hello"); }
}
