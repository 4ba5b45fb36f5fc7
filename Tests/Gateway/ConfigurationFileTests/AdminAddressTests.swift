import HTTPCore
import PinfoldConfiguration
import Testing

@testable import Gateway

@Suite("The administrative address")
struct AdminAddressTests {
    static let sockets: [(String, String, UInt32)] = [
        ("{ address: 'unix:/run/a.sock' }", "/run/a.sock", 0o600),
        ("{ address: unix:/run/a.sock, mode: \"0660\" }", "/run/a.sock", 0o660),
        ("{ address: unix:/run/a.sock, mode: 0666 }", "/run/a.sock", 0o666),
        ("{ address: 'unix:a.sock' }", "/srv/a.sock", 0o600),
        ("{ address: 'unix:~/a.sock', mode: \"0000\" }", "/home/someone/a.sock", 0),
    ]

    @Test(arguments: sockets)
    func `it may be a Unix socket`(text: String, path: String, mode: UInt32) throws {
        let snapshot = try load("admin: \(text)")
        #expect(snapshot.admin.address == .unix(UnixSocketPath(path: path, mode: mode)))
        #expect(snapshot.admin.metrics == .open)
        // What is printed loads to the same.
        #expect(try load(snapshot.effectiveYAML()).admin == snapshot.admin)
    }

    static let refused: [(String, String)] = [
        ("{ address: 'unix:' }", "\"unix:\" names no file; expected unix: and a path"),
        ("{ address: 'unix:/run/' }", "\"unix:/run/\" names no file; expected unix: and a path"),
        (
            "{ address: 'unix:/\(String(repeating: "x", count: 107))' }",
            "\"/\(String(repeating: "x", count: 107))\" is too long for a Unix socket; expected a "
                + "path of at most 107 bytes"
        ),
        (
            "{ address: 'unix:/a', mode: rw }",
            "\"rw\" is not valid; expected three octal digits after a 0, such as \"0660\""
        ),
        (
            "{ address: 'unix:/a', mode: \"0888\" }",
            "\"0888\" is not valid; expected three octal digits after a 0, such as \"0660\""
        ),
        (
            "{ address: 'unix:/a', mode: 660 }",
            "\"660\" is not valid; expected three octal digits after a 0, such as \"0660\""
        ),
        (
            "{ mode: \"0660\" }",
            "applies only to a Unix socket; expected address: unix:PATH, or no mode"
        ),
    ]

    @Test(arguments: refused)
    func `a socket that cannot be is an error`(text: String, problem: String) {
        let found = errors(of: "admin: \(text)")
        #expect(found.count == 1)
        #expect(found.first?.hasSuffix(": \(problem)") ?? false, "\(found)")
    }

    @Test func `with a Unix socket listeners may use the port that is its default`() throws {
        let text = """
            listeners: [{ address: '127.0.0.1:9090' }]
            admin: { address: 'unix:/run/a.sock' }
            """
        #expect(try load(text).listeners.map(\.address.port) == [9090])
        #expect(errors(of: "admin: { address: 'unix:/run/a.sock' }").isEmpty)
    }

    @Test func `a token that crosses the network in clear text causes a warning`() throws {
        try withTemporaryFolder { folder in
            try write("s3cret", to: "token", in: folder)
            func found(_ address: String) throws -> [String] {
                try warnings(
                    of: "admin: { address: '\(address)', tokenFile: token }", folder: folder + "/"
                ).filter { $0.contains("admin.tokenFile") }
            }
            #expect(try found("0.0.0.0:9090").count == 1)
            #expect(try found("0.0.0.0:9090").first?.contains("add admin.tls") ?? false)
            #expect(try found("127.0.0.1:9090").isEmpty)
            #expect(try found("unix:/run/a.sock").isEmpty)
        }
    }

    // MARK: What commands read

    @Test func `commands read only where the gateway is`() throws {
        try withTemporaryFolder { folder in
            func location(_ text: String) throws -> AdminLocation {
                try write(text, to: "gateway.yaml", in: folder)
                return try ConfigurationLoader(environment: testEnvironment)
                    .adminLocation(file: folder + "/gateway.yaml")
            }
            #expect(try location("workers: 1") == AdminLocation())
            // Nothing else is checked, and no file is read.
            let found = try location(
                """
                nonsense: 1
                admin:
                  address: 0.0.0.0:9443
                  tokenFile: none.token
                  tls: { certificate: [a.pem, /b.pem], key: none.key }
                  wrong: 2
                """)
            #expect(found.address == .network(try #require(Endpoint("0.0.0.0:9443"))))
            #expect(found.isSecure)
            #expect(found.tokenFile == folder + "/none.token")
            #expect(found.certificates == [folder + "/a.pem", "/b.pem"])
            #expect(
                try location("admin: { address: 'unix:a.sock' }").address
                    == .unix(UnixSocketPath(path: folder + "/a.sock")))
            let error = #expect(throws: ConfigurationErrors.self) {
                try location("workers: 1\nadmin: { address: nowhere }")
            }
            #expect(error?.errors.first?.origin.line == 2)
            #expect(throws: ConfigurationErrors.self) { try location("workers: [1") }
        }
    }
}
