import ArgumentParser
import HTTPTypes
import PinfoldClient

/// The format of `--write-out`: text with curl's variables and escapes.
struct WriteOut: Sendable {
    private enum Part: Sendable {
        case text(String)
        case variable(Variable)
    }

    /// The variables, by curl's names.
    enum Variable: String, Sendable, CaseIterable {
        case contentType = "content_type"
        case httpCode = "http_code"
        case responseCode = "response_code"
        case httpVersion = "http_version"
        case method
        case redirects = "num_redirects"
        case remoteAddress = "remote_ip"
        case remotePort = "remote_port"
        case downloaded = "size_download"
        case uploaded = "size_upload"
        case connect = "time_connect"
        case handshake = "time_appconnect"
        case lookup = "time_namelookup"
        case firstByte = "time_starttransfer"
        case total = "time_total"
        case url = "url_effective"
    }

    private var parts: [Part] = []

    /// Creates a format from an option's value: the format, or the name of the file (@FILE) or
    /// standard input (@-) that has it. As with curl, line ends of files are left out.
    init(argument: String) throws {
        guard argument.hasPrefix("@") else {
            self = try WriteOut(argument)
            return
        }
        let bytes = try CommandContent.bytes(of: argument, "--write-out")
        self = try WriteOut(
            String(decoding: bytes.filter { $0 != 0x0A && $0 != 0x0D }, as: UTF8.self))
    }

    /// - Throws: `ValidationError` for a variable that is not known.
    init(_ format: String) throws {
        var text = ""
        var rest = format[...]
        while let character = rest.popFirst() {
            if character == "%", rest.first == "{", let end = rest.firstIndex(of: "}") {
                let name = String(rest[rest.index(after: rest.startIndex)..<end])
                guard let variable = Variable(rawValue: name) else {
                    let names = Variable.allCases.map(\.rawValue).joined(separator: ", ")
                    throw ValidationError("--write-out: %{\(name)} is not one of \(names)")
                }
                parts += [.text(text), .variable(variable)]
                text = ""
                rest = rest[rest.index(after: end)...]
            } else if character == "%", rest.first == "%" {
                text.append("%")
                rest.removeFirst()
            } else if character == "\\", let escaped = rest.popFirst() {
                switch escaped {
                case "n": text.append("\n")
                case "r": text.append("\r")
                case "t": text.append("\t")
                default: text += "\\\(escaped)"
                }
            } else {
                text.append(character)
            }
        }
        parts.append(.text(text))
    }

    /// What is described.
    struct Subject {
        /// The last response, or `nil` if there was none.
        var response: HTTPResponse?
        var method: HTTPRequest.Method
        var url: String
        var metrics: TaskMetrics?
    }

    /// The text for a response, or for a request without one.
    func text(_ subject: Subject) -> String {
        parts.map { part in
            switch part {
            case .text(let text): text
            case .variable(let variable): value(of: variable, subject)
            }
        }.joined()
    }

    private func value(of variable: Variable, _ subject: Subject) -> String {
        let last = subject.metrics?.transactions.last
        let head = subject.response
        let server = last?.server ?? ""
        let colon = server.lastIndex(of: ":")
        // Each time counts from the beginning of the last request, as with curl.
        let times = [last?.queued, last?.lookup, last?.connect, last?.tunnel, last?.handshake]
            .map { $0 ?? .zero }
        func until(_ step: Int, _ duration: Duration?) -> String {
            duration == nil ? "0.000000" : Self.seconds(times[...step].reduce(.zero, +))
        }
        return switch variable {
        case .contentType: (try? head?.headerFields.single(.contentType)) ?? ""
        case .httpCode, .responseCode: head.map { "\($0.status.code)" } ?? "000"
        case .httpVersion: head == nil ? "0" : last?.protocolName == "h2" ? "2" : "1.1"
        case .method: subject.method.rawValue
        case .redirects: "\(subject.metrics?.redirects ?? 0)"
        case .remoteAddress:
            colon.map { server[..<$0].filter { !"[]".contains($0) } } ?? ""
        case .remotePort: colon.map { String(server[server.index(after: $0)...]) } ?? "0"
        case .downloaded: "\(last?.receivedBytes ?? 0)"
        case .uploaded: "\(last?.sentBytes ?? 0)"
        case .lookup: until(1, last?.lookup)
        case .connect: until(2, last?.connect)
        case .handshake: until(4, last?.handshake)
        case .firstByte: Self.seconds((last?.queued ?? .zero) + (last?.firstByte ?? .zero))
        case .total: Self.seconds(subject.metrics?.total ?? .zero)
        case .url: subject.url
        }
    }

    /// With six digits, as curl writes them.
    private static func seconds(_ duration: Duration) -> String {
        let microseconds = max(0, Int64(duration / .microseconds(1)))
        let digits = String(1_000_000 + microseconds % 1_000_000).dropFirst()
        return "\(microseconds / 1_000_000).\(digits)"
    }
}
