import CLinux
import EventLoop
import HTTPCore
import TestSupport
import Testing

@testable import PinfoldClient

/// nginx, which terminates TLS as `127.0.0.1` and forwards requests to a server in clear text,
/// telling it the version of HTTP (`X-Protocol`) and the number of the connection (`X-Connection`).
final class Nginx: Sendable {
    let url: String
    private let program: TestProgram
    private let folder: TemporaryFolder
    private let pem: [UInt8]

    /// Returns once it is listening.
    ///
    /// - Parameters:
    ///   - speaksHTTP2: Whether it selects HTTP/2 if a client offers that.
    ///   - secure: Whether it terminates TLS. In clear text, it speaks HTTP/2 either with all or
    ///     with none.
    init(before server: String, speaksHTTP2: Bool = false, secure: Bool = true) throws {
        folder = TemporaryFolder()
        pem = TestAuthority.makePEM(name: "nginx.test")
        folder.write(pem, to: "server.pem")
        // A port that was free may be in use by now; nginx then exits.
        for _ in 0..<10 {
            let port = try Self.freePort()
            let listener =
                "127.0.0.1:\(port)\(secure ? " ssl" : "")\(speaksHTTP2 ? " http2" : "")"
            folder.write(
                Array(Self.configuration(listener, server, folder.path).utf8), to: "conf")
            let program = try TestProgram(
                "env PATH=\"$PATH:/usr/sbin\" nginx -p '\(folder.path)' -e stderr -c conf")
            while let line = program.line() {
                guard line.contains("start worker process ") else { continue }
                self.program = program
                url = "\(secure ? "https" : "http")://127.0.0.1:\(port)"
                return
            }
            program.close()
        }
        throw StartError()
    }

    private struct StartError: Error {}

    private static func freePort() throws -> UInt16 {
        let socket = try Sockets.listen(on: try #require(Endpoint("127.0.0.1:0")))
        defer { Descriptors.close(socket) }
        return try #require(Sockets.localEndpoint(socket)).port
    }

    private static func configuration(
        _ listener: String, _ server: String, _ folder: String
    ) -> String {
        let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map {
            "\($0)_temp_path \(folder)/\($0);"
        }
        return """
            daemon off; \(geteuid() == 0 ? "user root;" : "") pid \(folder)/pid;
            worker_processes 1; error_log stderr notice;
            events { worker_connections 1024; }
            http {
                access_log off; client_max_body_size 0; \(paths.joined(separator: " "))
                keepalive_timeout 3600; client_header_timeout 3600; client_body_timeout 3600;
                server {
                    listen \(listener);
                    ssl_certificate \(folder)/server.pem;
                    ssl_certificate_key \(folder)/server.pem;
                    location / {
                        proxy_pass \(server);
                        proxy_http_version 1.1;
                        proxy_set_header Host $http_host;
                        proxy_set_header X-Forwarded-Proto https;
                        proxy_set_header X-Protocol $server_protocol;
                        proxy_set_header X-Connection $connection;
                    }
                }
            }
            """
    }

    /// A policy that trusts only this server.
    func policy() throws -> SecurityPolicy {
        var policy = SecurityPolicy()
        policy.trustsSystem = false
        policy.anchors = try CertificatePin.pins(in: TestAuthority.certificate(of: pem))
            .compactMap(\.certificate)
        return policy
    }

    func close() { program.close() }
}
