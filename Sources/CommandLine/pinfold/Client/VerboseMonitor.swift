import HTTPCore
import HTTPTypes
import Locking
import PinfoldClient
import PinfoldTLS

/// Prints requests, connections, responses and their timing, as `curl -v` does. Credentials and
/// cookies are masked.
final class VerboseMonitor: ConnectionMonitor {
    private let write: @Sendable (String) -> Void
    /// The versions of HTTP in which the next responses come.
    private let versions = Locked<[TaskIdentifier: String]>([:])

    /// - Parameter print: Prints lines.
    init(print: @escaping @Sendable (String) -> Void) { write = print }

    func request(_ task: TaskIdentifier, _ event: RequestEvent) {
        switch event {
        case .adapted: break
        case .sent(let request, let cause):
            print("* \(cause.rawValue): \(request.method) \(request.url)")
            print("> \(request.method) \(request.path ?? "/")")
            print("> Host: \(request.authority ?? "")")
            print(">", request.headerFields)
        case .received(let response, _):
            let version = versions.withLock { $0.removeValue(forKey: task) }
            let start = version.map { "< \($0) " } ?? "< "
            print("\(start)\(response.status.code) \(response.status.reasonPhrase)")
            print("<", response.headerFields)
        case .failed(let error, _): print("* failed (\(error.token)): \(error.explanation)")
        case .redirected(let request, _): print("* redirected to \(request.url)")
        case .challenged(_, let response):
            print("* the challenge (\(response.status.code)) is answered")
        case .retried(_, let wait): print("* tried again after \(wait)")
        }
    }

    func request(_ task: TaskIdentifier, arrivedBy transaction: TaskMetrics.Transaction) {
        guard let name = transaction.protocolName else { return }
        if let server = transaction.server {
            let how = transaction.reusedConnection ? "reused the connection" : "connected"
            print("* \(how) to \(server)")
        }
        if let tls = transaction.tls { for line in Self.lines(tls, name) { print(line) } }
        let version = HTTPVersionText.of(name)
        print("* using \(version)")
        versions.withLock { $0[task] = version }
    }

    /// In curl's words, for whoever looks for them.
    private static func lines(_ tls: TLSSummary, _ protocolName: String) -> [String] {
        var lines = ["* SSL connection using TLSv\(tls.version.text) / \(tls.cipherSuite)"]
        if tls.isResumed { lines.append("* the TLS session was resumed") }
        lines.append("* ALPN: \(protocolName)")
        guard let certificate = tls.certificate else { return lines }
        lines += [
            "* Server certificate:",
            "*  subject: \(certificate.subject)",
            "*  subjectAltName: \(certificate.names.joined(separator: ", "))",
            "*  start date: \(CivilDate.text(secondsSince1970: certificate.notBefore))",
            "*  expire date: \(CivilDate.text(secondsSince1970: certificate.notAfter))",
            "*  issuer: \(certificate.issuer)",
        ]
        return lines
    }

    func session(_ event: SessionEvent) {
        guard case .didComplete(let end) = event else { return }
        for line in TimingLine.lines(end) { print("* " + line.dropLast()) }
    }

    private func print(_ mark: String, _ fields: HTTPFields) {
        for field in fields.masked { print("\(mark) \(field.name.rawName): \(field.value)") }
        print(mark)
    }

    /// Whatever a server put into a line, it does nothing to the terminal.
    private func print(_ line: String) { write(TerminalText.escaped(line) + "\n") }
}

/// The version of HTTP as it is shown.
enum HTTPVersionText {
    /// - Parameter name: The protocol's name in ALPN.
    static func of(_ name: String?) -> String { name == "h2" ? "HTTP/2" : "HTTP/1.1" }
}
