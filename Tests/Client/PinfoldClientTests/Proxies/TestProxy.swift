import HTTPCore
import HTTPTypes
import Locking
import PinfoldTLS
import Testing

@testable import PinfoldClient

/// A proxy, and a server behind it under any name. None of the names can be resolved.
final class TestProxy: Sendable {
    let proxy: TestServer
    let origin: TestServer

    /// Creates a proxy.
    ///
    /// - Parameters:
    ///   - secure: Whether to use TLS with the proxy, as `127.0.0.1`.
    ///   - origin: The server of all tunnels. It answers with the paths of its requests.
    init(secure: Bool = false, origin: TestServer) throws {
        self.origin = origin
        let endpoint = origin.endpoint
        proxy = try TestServer(secure: secure) { connection, request in
            guard request.startLine.hasPrefix("CONNECT ") else {
                connection.respond("200 OK", ["X-Proxy: yes"], "forwarded \(request.path)")
                return true
            }
            connection.send("HTTP/1.1 200 Connection established\r\n\r\n")
            connection.relay(to: endpoint)
            return false
        }
    }

    func close() {
        proxy.close()
        origin.close()
    }

    /// The start lines that the proxy has received.
    var asked: [String] { proxy.requests.map(\.startLine) }
}

/// The identity of the servers behind proxies.
enum TestOrigin {
    private static let pem = TestAuthority.makePEM(
        name: "origin.test", alternatives: "DNS:origin.test,DNS:other.test")
    private static let certificate = TestAuthority.certificate(of: pem)
    private static let context: TLSServerContext = {
        guard let identity = try? TLSServerIdentity(chainPEM: pem, keyPEM: pem),
            let context = try? TLSServerContext(identity: identity)
        else { fatalError("no server context") }
        return context
    }()

    /// A policy that trusts the servers by a pin, and also the proxy, which is not pinned.
    static func policy(_ mode: SecurityPolicy.Mode = .publicKey) throws -> SecurityPolicy {
        var policy = try TestAuthority.policy()
        policy.anchors += try CertificatePin.pins(in: certificate).compactMap(
            \.certificate)
        policy.mode = mode
        policy.pins = try mode == .none ? [] : CertificatePin.pins(in: certificate)
        return policy
    }

    static func server(
        secure: Bool = true, _ answer: TestServer.Answer? = nil
    ) throws -> TestServer {
        try TestServer(context: secure ? context : nil) { connection, request in
            if let answer { return answer(connection, request) }
            connection.respond("200 OK", [], "\(request.path) \(request.content.count)")
            return true
        }
    }
}

extension SessionConfiguration {
    /// A configuration for requests through a proxy.
    static func through(
        _ proxy: TestServer, credentials: String = "", policy: SecurityPolicy = .default
    ) throws -> SessionConfiguration {
        var configuration = SessionConfiguration.patient
        configuration.securityPolicy = policy
        configuration.proxies = .fixed(
            try Proxy(proxy.url.replacing("://", with: "://\(credentials)")))
        return configuration
    }
}

/// Runs a test with a proxy, a server and a runtime.
func withProxy(
    secure: Bool = false, origin: TestServer? = nil,
    _ body: (TestProxy, ClientRuntime) async throws -> Void
) async throws {
    let proxy = try TestProxy(secure: secure, origin: try origin ?? TestOrigin.server())
    let runtime = try ClientRuntime()
    defer {
        runtime.close()
        proxy.close()
    }
    try await body(proxy, runtime)
}
