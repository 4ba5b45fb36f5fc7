import ArgumentParser
import PinfoldClient

/// With what the commands of the client end: curl's numbers, where curl has one.
enum ClientExit: Int32, CaseIterable {
    case other = 1
    case url = 3
    case nameNotResolved = 6
    case notConnected = 7
    case status = 22
    case file = 23
    case content = 26
    case timedOut = 28
    case range = 33
    case secure = 60
    case redirects = 47
    case lost = 56
    case tooLong = 63
    case clearText = 90
    case proxy = 97

    /// What it stands for, in the help.
    var meaning: String {
        switch self {
        case .other: "anything else"
        case .url: "no request can be made of it: a malformed URL"
        case .nameNotResolved: "the host's name has no address"
        case .notConnected: "no connection"
        case .status: "a status of 400 or more"
        case .file: "a file or standard output cannot be written, or a file exists"
        case .content: "what is to be sent cannot be read"
        case .timedOut: "it took too long"
        case .range: "the server answers ranges wrongly: without --resume it may succeed"
        case .secure: "the server is not trusted: its chain, its name, its pins"
        case .redirects: "too many redirects, or one that is not followed"
        case .lost: "the connection was lost, or what came is no response"
        case .tooLong: "the content is too long to be kept in memory"
        case .clearText: "clear text, where pins ask for TLS"
        case .proxy: "the proxy cannot be used, or refuses"
        }
    }

    static let help =
        "Exits with 0 if every URL had a response with a status below 400; else with the number of "
        + "the first that failed, in their order:\n\n"
        + allCases.map { "  \($0.rawValue)\t\($0.meaning)" }.joined(separator: "\n")

    init(_ error: ClientError) {
        if case .range = (error.underlying as? DownloadFailure)?.problem {
            self = .range
            return
        }
        switch error.reason {
        case .invalidRequest, .serialization: self = .url
        case .invalidSecurityPolicy, .secureConnectionFailed, .clientCertificateRequired,
            .clientCertificateRejected, .invalidClientCertificate:
            self = .secure
        case .clearTextRefused: self = .clearText
        case .invalidProxy, .proxyFailed, .proxyAuthenticationRequired: self = .proxy
        case .nameNotResolved: self = .nameNotResolved
        case .cannotConnect: self = .notConnected
        case .connectionLost, .badResponse: self = .lost
        case .timedOut: self = .timedOut
        case .unacceptableStatus: self = .status
        case .contentTooLong: self = .tooLong
        case .tooManyRedirects, .redirectRefused: self = .redirects
        case .contentNotRepeatable, .contentFailed: self = .content
        case .fileFailed: self = .file
        default: self = .other
        }
    }
}

/// What ends a command of the client, with its exit code.
struct ClientFailure: Error, CustomStringConvertible {
    let exit: ClientExit
    let description: String

    init(_ exit: ClientExit, _ description: String) {
        self.exit = exit
        self.description = description
    }

    /// The URL, the reason's token, what happened and, for pins, what the server showed.
    init(_ error: ClientError, pins: [String]) {
        var text = error.url.isEmpty ? "" : "\(error.url): "
        text += "\(error.token): \(error.explanation)"
        if !error.presentedPins.isEmpty {
            text += "\n  expected one of: \(pins.joined(separator: " "))"
            text += "\n  the server showed: \(error.presentedPins.joined(separator: " "))"
        }
        if let data = error.resumeData {
            text += "\n  \(data.receivedBytes) bytes are kept in \(data.partialFile); "
            text += "--resume goes on with them"
        }
        self.init(ClientExit(error), text)
    }
}
