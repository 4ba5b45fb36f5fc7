import HTTPTypes
import PinfoldClient

/// Prints requests, responses and their timing, as `curl -v` does. Credentials and cookies are
/// masked.
struct VerboseMonitor: EventMonitor {
    private let write: @Sendable (String) -> Void

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
            print("< \(response.status.code) \(response.status.reasonPhrase)")
            print("<", response.headerFields)
        case .failed(let error, _): print("* failed (\(error.token)): \(error.explanation)")
        case .redirected(let request, _): print("* redirected to \(request.url)")
        case .challenged(_, let response):
            print("* the challenge (\(response.status.code)) is answered")
        case .retried(_, let wait): print("* tried again after \(wait)")
        }
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
