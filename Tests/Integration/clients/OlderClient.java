// Java's older client (HttpsURLConnection): a URL through a proxy on a port of 127.0.0.1.

import java.net.HttpURLConnection;
import java.net.InetSocketAddress;
import java.net.Proxy;
import java.net.URI;

public class OlderClient {
    public static void main(String[] arguments) throws Exception {
        var address = new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0]));
        var url = URI.create(arguments[1]).toURL();
        var connection = (HttpURLConnection) url.openConnection(new Proxy(Proxy.Type.HTTP, address));
        System.out.println(connection.getResponseCode());
    }
}
