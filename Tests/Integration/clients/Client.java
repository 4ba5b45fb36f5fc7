import java.net.Authenticator;
import java.net.PasswordAuthentication;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.HexFormat;

/** `Client BASE FILE STEP...`: what `support/programs.py` describes, with java.net.http. */
final class Client {
    public static void main(String[] arguments) throws Exception {
        // Its proxy is that of the properties, its trust that of the store which they name.
        HttpClient.Builder settings = HttpClient.newBuilder();
        String user = URI.create(System.getenv().getOrDefault("http_proxy", "")).getUserInfo();
        if (user != null) {
            String[] parts = user.split(":", 2);
            settings.authenticator(new Authenticator() {
                @Override
                protected PasswordAuthentication getPasswordAuthentication() {
                    return new PasswordAuthentication(parts[0], parts[1].toCharArray());
                }
            });
        }
        HttpClient client = settings.build();
        for (int index = 2; index < arguments.length; index++) {
            String[] step = arguments[index].split(":", 2);
            URI target = URI.create(arguments[0] + step[1]);
            HttpRequest.Builder request = HttpRequest.newBuilder(target);
            if (System.getenv("PROXY_TOKEN") != null) {
                request.header("Proxy-Authorization", "Bearer " + System.getenv("PROXY_TOKEN"));
            }
            if (step[0].equals("PUT")) {
                request.PUT(HttpRequest.BodyPublishers.ofFile(Path.of(arguments[1])));
            }
            HttpResponse<byte[]> answer =
                client.send(request.build(), HttpResponse.BodyHandlers.ofByteArray());
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(answer.body());
            System.out.println(answer.statusCode() + " " + answer.body().length + " "
                + HexFormat.of().formatHex(digest));
        }
        System.exit(0);
    }
}
