import HTTPTypes
import PinfoldClient

/// Prints requests, responses and their timing, as `curl -v` does. Credentials and cookies are
/// masked.
struct VerboseMonitor: EventMonitor {
    let print: @Sendable (String) -> Void

    func request(_ task: TaskIdentifier, _ event: RequestEvent) {
        switch event {
        case .adapted: break
        case .sent(let request, let cause):
            print("* \(cause.rawValue): \(request.method) \(request.url)\n")
            print("> \(request.method) \(request.path ?? "/")\n")
            print("> Host: \(request.authority ?? "")\n")
            print(Self.lines(">", request.headerFields))
        case .received(let response, _):
            print("< \(response.status.code) \(response.status.reasonPhrase)\n")
            print(Self.lines("<", response.headerFields))
        case .failed(let error, _): print("* failed (\(error.token)): \(error.explanation)\n")
        case .redirected(let request, _): print("* redirected to \(request.url)\n")
        case .challenged(_, let response):
            print("* the challenge (\(response.status.code)) is answered\n")
        case .retried(_, let wait): print("* tried again after \(wait)\n")
        }
    }

    func session(_ event: SessionEvent) {
        guard case .didComplete(let end) = event else { return }
        for line in TimingLine.lines(end) { print("* " + line) }
    }

    private static func lines(_ mark: String, _ fields: HTTPFields) -> String {
        // What is not printable does not reach the terminal.
        let shown = fields.masked.map { field in
            "\(mark) \(field.name.rawName): "
                + String(
                    String.UnicodeScalarView(
                        field.value.unicodeScalars.map {
                            $0.value < 0x20 || $0.value == 0x7F ? "?" : $0
                        })) + "\n"
        }
        return shown.joined() + "\(mark)\n"
    }
}
