import ArgumentParser
import CLinux
import Gateway
import HTTPTypes
import PinfoldClient
import Retries

import enum Trust.PinError

/// What the commands of the client take about connections and requests.
struct ConnectionOptions: ParsableArguments {
    @Option(
        name: [.customShort("H"), .customLong("header")],
        help: ArgumentHelp("A field of the request; repeatable.", valueName: "name: value"))
    var headers: [String] = []

    @Option(
        help: ArgumentHelp(
            "Credentials for servers of the URLs that ask for them (Basic, Digest); no other "
                + "gets them.", valueName: "name:password"))
    var user: String?

    @Option(
        help: ArgumentHelp(
            "Take cookies from this file and keep them in it, those of a session, too, as curl "
                + "does and in its format.",
            valueName: "file"))
    var cookieJar: String?

    @Option(
        name: .customLong("pin"),
        help: ArgumentHelp(
            "A pin of the server's chain: sha256/BASE64, a fingerprint, or a file of certificates "
                + "and keys; repeatable, one is enough.", valueName: "pin"))
    var pins: [String] = []

    @Option(
        name: .customLong("cacert"),
        help: ArgumentHelp(
            "Trust the certificates of this file, in place of the system's; repeatable.",
            valueName: "file"))
    var authorities: [String] = []

    @Flag(
        help: ArgumentHelp(
            """
            Take certificates that are not valid: with --pin, where the server's own key is \
            pinned; without, any, and any name.
            """))
    var allowInvalidCertificates = false

    @Option(
        help: ArgumentHelp(
            "Redirects that are followed; with 0 a redirect is a response like others.",
            valueName: "count"))
    var maxRedirects = 20

    @Option(help: ArgumentHelp("How long nothing may move.", valueName: "seconds"))
    var timeout = 60.0

    @Option(
        help: ArgumentHelp(
            "Send a request that failed so many times again, where it may be sent twice.",
            valueName: "count"))
    var retry = 0

    @Option(
        help: ArgumentHelp(
            "Go through this proxy (http or https), in place of what http_proxy, https_proxy, "
                + "all_proxy and no_proxy say; with an empty text: through none.",
            valueName: "url"))
    var proxy: String?

    func validate() throws {
        for header in headers { _ = try Self.field(header) }
        if let user, !user.contains(":") {
            throw ValidationError("--user \(user): expected name:password")
        }
        guard timeout > 0, timeout <= 86_400 else {
            throw ValidationError("--timeout takes more than 0 and up to 86400 seconds")
        }
        guard (0...1000).contains(maxRedirects) else {
            throw ValidationError("--max-redirects takes 0 to 1000")
        }
        guard (0...100).contains(retry) else { throw ValidationError("--retry takes 0 to 100") }
    }

    /// The fields that the options ask for.
    func fields() throws -> HTTPFields {
        var fields = HTTPFields()
        for header in headers { fields.append(try Self.field(header)) }
        if !fields.contains(.userAgent) { fields[.userAgent] = "pinfold/\(pinfoldVersion)" }
        if !fields.contains(.accept) { fields[.accept] = "*/*" }
        return fields
    }

    private static func field(_ text: String) throws -> HTTPField {
        guard let colon = text.firstIndex(of: ":"),
            let name = HTTPField.Name(String(text[..<colon]))
        else {
            throw ValidationError("--header \(text): expected a field's name, a colon, a value")
        }
        let value = String(text[text.index(after: colon)...].drop { $0 == " " || $0 == "\t" })
        guard HTTPField.isValidValue(value) else {
            throw ValidationError("--header \(text): the value has a character that none may have")
        }
        if let reason = Self.unsent[name.canonicalName] {
            throw ValidationError("--header \(name.rawName) is not sent: \(reason)")
        }
        return HTTPField(name: name, value: value)
    }

    /// The fields that the client writes itself or leaves out, each with the reason.
    private static let unsent = [
        "host": "the host is that of the URL",
        "content-length": "the client counts the content's bytes",
        "transfer-encoding": "how the content is framed is the client's business",
        "connection": "the connection is the client's",
        "keep-alive": "the connection is the client's",
        "proxy-connection": "the connection is the client's",
        "upgrade": "the client stays with HTTP/1.1",
        "http2-settings": "the client stays with HTTP/1.1",
        "proxy-authorization": "a user of the proxy is named in the URL of --proxy",
    ]

    /// A session as the options want it.
    func session(for urls: [String], parallel: Int) throws -> SessionManager {
        var configuration = SessionConfiguration()
        configuration.securityPolicy = try policy()
        configuration.requestTimeout = .milliseconds(Int64(timeout * 1000))
        configuration.connectTimeout = min(.seconds(10), configuration.requestTimeout)
        configuration.maximumRequestsPerOrigin = parallel
        configuration.redirects = maxRedirects == 0 ? .none : .follow(maximum: maxRedirects)
        if retry > 0 { configuration.retries = RetryPolicy(maximumAttempts: retry + 1) }
        // As curl does.
        configuration.resendsUnanswered = true
        if let proxy {
            configuration.proxies = proxy.isEmpty ? .direct : .fixed(try Proxy(proxy))
        }
        if let cookieJar {
            configuration.cookies = try CookieStore(file: cookieJar, keepsSessionCookies: true)
        }
        if let user, let colon = user.firstIndex(of: ":") {
            let credential = Credential(
                user: String(user[..<colon]), password: String(user[user.index(after: colon)...]))
            let isAsked: @Sendable (ProtectionSpace) -> Bool = { space in
                urls.contains { (try? ProtectionSpace($0, realm: space.realm)) == space }
            }
            configuration.answersOrigin = isAsked
            configuration.challenges = { challenge in
                guard challenge.serverTrust == nil else { return .performDefaultHandling }
                return isAsked(challenge.space)
                    ? .useCredential(credential) : .rejectProtectionSpace
            }
        }
        return try SessionManager(configuration: configuration)
    }

    private func policy() throws -> SecurityPolicy {
        var pinned: [CertificatePin] = []
        for pin in pins {
            do throws(ClientError) {
                pinned.append(try CertificatePin(pin))
            } catch let problem
                where problem.underlying is PinError && access(pin, F_OK) != 0
            {
                // It is meant as one, and names no file.
                throw ClientFailure(.pins, "--pin: \(problem.explanation)")
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
        // A name in a certificate that anybody may have made says nothing.
        if allowInvalidCertificates, pinned.isEmpty { policy.validatesDomainName = false }
        return policy
    }

    /// - Throws: ``ClientFailure`` with this exit.
    private static func pins(
        in file: String, _ option: String, _ exit: ClientExit
    ) throws -> [CertificatePin] {
        do {
            return try CertificatePin.pins(in: CommandFiles.read(file))
        } catch let error as ClientError {
            throw ClientFailure(exit, "\(option) \(file): \(error.explanation)")
        } catch {
            throw ClientFailure(exit, "\(option) \(error)")
        }
    }
}
