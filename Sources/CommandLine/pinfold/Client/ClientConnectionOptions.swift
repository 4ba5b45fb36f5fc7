import ArgumentParser
import CLinux
import Gateway
import HTTPTypes
import PinfoldClient

import enum Trust.PinError

/// The options of the client commands for connections and requests.
struct ClientConnectionOptions: ParsableArguments {
    @Option(
        name: [.customShort("H"), .customLong("header")],
        help: ArgumentHelp(
            "Send this header field (NAME: VALUE), an empty one (NAME;), or none of those that are "
                + "sent otherwise (NAME:); repeatable.", valueName: "name: value"))
    var headers: [String] = []

    @Option(
        name: [.customShort("u"), .long],
        help: ArgumentHelp(
            "Credentials for the servers of the URLs, sent if they ask for them (Basic or Digest); "
                + "never sent to other servers. Without a password, it is asked for on the "
                + "terminal.",
            valueName: "name[:password]"))
    var user: String?

    @Option(
        help: ArgumentHelp(
            "Read cookies from this file and save them to it, session cookies included, in "
                + "curl's format.",
            valueName: "file"), completion: .file())
    var cookieJar: String?

    @Option(
        name: .customLong("pin"),
        help: ArgumentHelp(
            "A pin that the server's chain must match: sha256/BASE64, a certificate's "
                + "fingerprint, or a file of certificates or keys; repeatable, one match is "
                + "enough.", valueName: "pin"))
    var pins: [String] = []

    @Option(
        name: .customLong("cacert"),
        help: ArgumentHelp(
            "Trust the certificates in this file instead of the system's; repeatable.",
            valueName: "file"), completion: .file())
    var authorities: [String] = []

    @Option(
        name: [.customShort("E"), .customLong("cert")],
        help: ArgumentHelp(
            "The client certificate for the servers of the URLs, in PEM, with its key unless --key "
                + "is given.", valueName: "file"), completion: .file())
    var certificate: String?

    @Option(
        help: ArgumentHelp("The key of --cert, in PEM.", valueName: "file"), completion: .file())
    var key: String?

    @Flag(
        name: [.customShort("k"), .customLong("insecure")],
        help: ArgumentHelp("Refused, with what to use instead.", visibility: .hidden))
    var insecure = false

    @Flag(
        help: ArgumentHelp(
            """
            Accept invalid certificates: with --pin, if the server's own key is pinned; without \
            --pin, every certificate for every name.
            """))
    var allowInvalidCertificates = false

    @Option(
        help: ArgumentHelp(
            "Follow at most this many redirects; with 0, return redirects like other responses.",
            valueName: "count"))
    var maxRedirects = 20

    @Flag(
        name: [.customShort("L"), .customLong("location")],
        help: ArgumentHelp("Follow redirects, as is done anyway.", visibility: .hidden))
    var followsRedirects = false

    @Flag(
        help: ArgumentHelp("Ask for compressed content, as is done anyway.", visibility: .hidden))
    var compressed = false

    @Flag(name: .customLong("http1.1"), help: "Speak HTTP/1.1, even if the server speaks HTTP/2.")
    var onlyHTTP1 = false

    @Flag(
        name: .customLong("http2"),
        help: ArgumentHelp(
            "Speak HTTP/2 if the server does, as is done anyway.", visibility: .hidden))
    var offersHTTP2 = false

    @Option(
        name: .customLong("resolve"),
        help: ArgumentHelp(
            "Connect to these addresses instead of those of the host, or of every host (*); "
                + "repeatable.",
            valueName: "host:port:address[,address]"))
    var resolved: [String] = []

    @Option(
        help: ArgumentHelp(
            "Connect to this Unix socket, whatever the host.", valueName: "path"),
        completion: .file())
    var unixSocket: String?

    @Option(
        help: ArgumentHelp(
            "Connect from this network interface or local address.", valueName: "name|address"))
    var interface: String?

    @Option(
        help: ArgumentHelp("Give up after this long without progress.", valueName: "seconds"))
    var timeout = 60.0

    @Option(
        help: ArgumentHelp(
            "Retry a failed request up to this many times, if it is safe to send it again.",
            valueName: "count"))
    var retry = 0

    @Option(
        name: [.customShort("x"), .long],
        help: ArgumentHelp(
            "Use this proxy (http, https, socks5 or socks5h) instead of http_proxy, https_proxy, "
                + "all_proxy and no_proxy; '' for no proxy.",
            valueName: "url"))
    var proxy: String?

    func validate() throws {
        for header in headers { _ = try Self.field(header) }
        if let user, user.isEmpty || user.hasPrefix(":") {
            throw ValidationError("--user \(user): expected name or name:password")
        }
        if insecure {
            throw ValidationError(
                "-k (--insecure) is refused: whoever answers could read and change everything. To "
                    + "trust one server, use --cacert with its certificate, or --pin with its key "
                    + "(pinfold trust shows both); to try something out, "
                    + "--allow-invalid-certificates")
        }
        if key != nil, certificate == nil { throw ValidationError("--key needs --cert") }
        do throws(ClientError) { _ = try connections() } catch {
            throw ValidationError(error.explanation)
        }
        guard timeout > 0, timeout <= 86_400 else {
            throw ValidationError("--timeout must be greater than 0 and at most 86400 seconds")
        }
        guard (0...1000).contains(maxRedirects) else {
            throw ValidationError("--max-redirects must be from 0 to 1000")
        }
        guard (0...100).contains(retry) else {
            throw ValidationError("--retry must be from 0 to 100")
        }
    }

    /// The header fields that the options specify.
    func fields() throws -> HTTPFields {
        var fields = HTTPFields()
        var leftOut: [HTTPField.Name] = []
        for header in headers {
            let (name, value) = try Self.field(header)
            guard let value else {
                leftOut.append(name)
                continue
            }
            fields.append(HTTPField(name: name, value: value))
        }
        for (name, value) in [
            (HTTPField.Name.userAgent, "pinfold/\(pinfoldVersion)"), (.accept, "*/*"),
        ] where !fields.contains(name) && !leftOut.contains(name) {
            fields[name] = value
        }
        return fields
    }

    /// Whether the header fields say that no codings of the content are offered.
    private var offersNoCodings: Bool {
        let named = headers.compactMap { try? Self.field($0) }.filter { $0.name == .acceptEncoding }
        return !named.isEmpty && named.allSatisfy { $0.value == nil }
    }

    /// A field as curl takes it: without a value, it is to be left out; with a semicolon instead of
    /// the colon, it is empty.
    private static func field(_ text: String) throws -> (name: HTTPField.Name, value: String?) {
        let mark = text.firstIndex(of: ":") ?? (text.last == ";" ? text.indices.last : nil)
        guard let mark, let name = HTTPField.Name(String(text[..<mark])) else {
            throw ValidationError("--header \(text): expected NAME: VALUE, NAME: or NAME;")
        }
        let value = String(text[text.index(after: mark)...].drop { $0 == " " || $0 == "\t" })
        guard HTTPField.isValidValue(value) else {
            throw ValidationError("--header \(text): the value has an invalid character")
        }
        if let reason = Self.unsent[name.canonicalName] {
            throw ValidationError("--header \(name.rawName) cannot be set: \(reason)")
        }
        return (name, value.isEmpty && text[mark] == ":" ? nil : value)
    }

    /// The fields that the client writes itself or never sends, each with the reason.
    private static let unsent = [
        "host": "it is taken from the URL",
        "content-length": "the client computes it",
        "transfer-encoding": "the client frames the content",
        "connection": "the client manages the connection",
        "keep-alive": "the client manages the connection",
        "proxy-connection": "the client manages the connection",
        "upgrade": "the client opens WebSockets by itself",
        "http2-settings": "the client agrees on HTTP/2 over TLS",
        "proxy-authorization": "credentials for the proxy belong in the URL of --proxy",
    ]

    /// Where connections are made.
    private func connections() throws(ClientError) -> ConnectionOptions {
        var options = ConnectionOptions()
        for text in resolved {
            let entry = try ResolveArgument(text)
            try options.resolve(entry.host, port: entry.port, to: entry.addresses)
        }
        if let unixSocket { try options.connect(toUnixSocket: unixSocket) }
        guard let interface else { return options }
        let isAddress = interface.contains(":") || interface.split(separator: ".").count == 4
        if isAddress {
            try options.connect(from: [interface])
        } else {
            try options.connect(interface: interface)
        }
        return options
    }

    /// The client certificate, for the servers of the URLs.
    private func certificates(for urls: [String]) throws -> [ClientCertificate] {
        guard let certificate else { return [] }
        let hosts = urls.compactMap { try? HTTPRequest(.get, $0).origin }.map {
            "\($0.host):\($0.port)"
        }
        guard !hosts.isEmpty else { return [] }
        return [
            try ClientCertificate(certificatePath: certificate, keyPath: key, hosts: hosts)
        ]
    }

    /// A session configured by the options.
    func session(
        for urls: [String], parallel: Int, monitors: [any EventMonitor] = []
    ) throws -> SessionManager {
        var configuration = SessionConfiguration()
        configuration.eventMonitors = monitors
        configuration.securityPolicy = try policy()
        if offersNoCodings { configuration.decodesContent = false }
        if onlyHTTP1 { configuration.httpVersion = .http1Only }
        configuration.requestTimeout = .milliseconds(Int64(timeout * 1000))
        configuration.connectTimeout = min(.seconds(10), configuration.requestTimeout)
        configuration.maximumRequestsPerOrigin = parallel
        configuration.redirects = maxRedirects == 0 ? .none : .follow(maximum: maxRedirects)
        if retry > 0 { configuration.retries = RetryPolicy(maximumAttempts: retry + 1) }
        // Like curl.
        configuration.resendsUnansweredRequests = true
        configuration.connections = try connections()
        configuration.clientCertificates = try certificates(for: urls)
        if let proxy {
            configuration.proxies = proxy.isEmpty ? .direct : .fixed(try Proxy(proxy))
        }
        if let cookieJar {
            configuration.cookies = try CookieStore(file: cookieJar, keepsSessionCookies: true)
        }
        if let user {
            let parts = user.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            let password = parts.count > 1 ? String(parts[1]) : try Self.password(of: parts[0])
            let credential = Credential(user: String(parts[0]), password: password)
            let isAsked: @Sendable (ProtectionSpace) -> Bool = { space in
                urls.contains { (try? ProtectionSpace($0, realm: space.realm)) == space }
            }
            configuration.answersOrigin = isAsked
            configuration.challenges = { challenge in
                guard challenge.serverTrust == nil else { return .performDefaultHandling }
                return isAsked(challenge.protectionSpace)
                    ? .useCredential(credential) : .rejectProtectionSpace
            }
        }
        return try SessionManager(configuration: configuration)
    }

    private static func password(of user: Substring) throws -> String {
        guard let password = PasswordInput.ask(for: user) else {
            throw ValidationError(
                "--user \(user): there is no password: no terminal to ask on, and nothing left to "
                    + "read on standard input; expected NAME:PASSWORD")
        }
        return password
    }

    private func policy() throws -> SecurityPolicy {
        var pinned: [CertificatePin] = []
        for pin in pins {
            do throws(ClientError) {
                pinned.append(try CertificatePin(pin))
            } catch let problem
                where problem.underlying is PinError && access(pin, F_OK) != 0
            {
                // There is no such file, so it was meant as a pin.
                throw ClientCommandError(.pins, "--pin: \(problem.explanation)")
            } catch {
                pinned += try Self.pins(in: pin, "--pin", .pins)
            }
        }
        var policy = SecurityPolicy(mode: pinned.isEmpty ? .none : .publicKey, pins: pinned)
        for file in authorities {
            let found = try Self.pins(in: file, "--cacert", .authorities)
            policy.anchors += found.compactMap(\.certificate)
            policy.trustsSystem = false
        }
        policy.allowsInvalidCertificates = allowInvalidCertificates
        // The name in a certificate that anyone may have made proves nothing.
        if allowInvalidCertificates, pinned.isEmpty { policy.validatesDomainName = false }
        return policy
    }

    /// Reads the certificates and keys of a file.
    ///
    /// - Throws: ``ClientCommandError`` with this exit code.
    private static func pins(
        in file: String, _ option: String, _ exit: ClientExit
    ) throws -> [CertificatePin] {
        do {
            return try CertificatePin.pins(in: CommandFiles.read(file))
        } catch let error as ClientError {
            throw ClientCommandError(exit, "\(option) \(file): \(error.explanation)")
        } catch {
            throw ClientCommandError(exit, "\(option) \(error)")
        }
    }
}
