import ArgumentParser
import HTTPCore
import PinfoldClient
import PinfoldEngine
import PinfoldTLS

/// The exit codes of the client commands: curl's, where curl has one.
enum ClientExit: Int32, CaseIterable {
    /// An unsupported scheme, as in curl, and any error for which curl has no code.
    case other = 1
    case url = 3
    case proxyNameNotResolved = 5
    case nameNotResolved = 6
    case notConnected = 7
    case incomplete = 18
    case status = 22
    case file = 23
    case content = 26
    case resources = 27
    case timedOut = 28
    case range = 33
    case tls = 35
    case redirects = 47
    case empty = 52
    case lost = 56
    case secure = 60
    case undecodable = 61
    case tooLong = 63
    case contentNotRepeatable = 65
    case authorities = 77
    case pins = 90
    case authentication = 94
    case proxy = 97

    /// The description of the exit code in the help.
    var meaning: String {
        switch self {
        case .other: "a URL or redirect with an unsupported scheme, or any error not listed here"
        case .url: "the URL is malformed"
        case .proxyNameNotResolved: "the proxy's name cannot be resolved, or its URL is malformed"
        case .nameNotResolved: "the host's name cannot be resolved"
        case .notConnected: "cannot connect to the server or the proxy"
        case .incomplete: "the content ended early"
        case .status: "the status is 400 or above"
        case .file: "a file or standard output cannot be written, or a file already exists"
        case .content: "the content to send cannot be read"
        case .resources: "the program is out of memory or file descriptors"
        case .timedOut: "the request timed out"
        case .range: "the server answered a range request incorrectly; try again without --resume"
        case .tls: "the TLS handshake failed, or the port does not speak TLS"
        case .redirects: "there were too many redirects"
        case .empty: "the server closed the connection without a response"
        case .lost: "the connection was lost, or the response is invalid"
        case .secure: "the server is not trusted: its certificate chain or name is not valid"
        case .undecodable: "the content does not match its Content-Encoding"
        case .tooLong: "the content is too long to hold in memory"
        case .contentNotRepeatable: "the content had to be sent again, but can be read only once"
        case .authorities: "a --cacert file cannot be read"
        case .pins: "no pin matches, a pin cannot be read, or pins do not allow an http:// URL"
        case .authentication:
            "the server's authentication challenge is unsupported or malformed"
        case .proxy: "the proxy refused the request, or its response is invalid"
        }
    }

    static let help =
        "Exits with 0 if every URL had a response with a status below 400, and with 64 if the "
        + "command line is invalid. Otherwise the exit code is that of the first URL on the "
        + "command line that failed:\n\n"
        + allCases.map { "  \($0.rawValue)\t\($0.meaning)" }.joined(separator: "\n")

    init(_ error: ClientError) {
        let download = error.underlying as? DownloadError
        let fault = (download?.underlying ?? error.underlying) as? ExchangeError
        switch download?.reason {
        case .range: self = .range
        case .length: self = .incomplete
        default: self = fault.flatMap { Self($0) } ?? Self(reason: error)
        }
    }

    /// The code for what only the engine's fault distinguishes, or `nil` if the error's reason is
    /// enough.
    private init?(_ fault: ExchangeError) {
        switch fault {
        case .response(.truncatedBody): self = .incomplete
        case .server(.upstreamClosed), .upstreamUnanswered(nil): self = .empty
        case .tlsFailed(let error), .proxy(.tlsFailed(let error)): self.init(error)
        case .proxy(.unreachable(.nameNotResolved)): self = .proxyNameNotResolved
        case .proxy(.unreachable(.connectFailed)): self = .notConnected
        default: return nil
        }
    }

    private init(_ error: TLSError) {
        switch error {
        case .trust(let failure):
            if case .noPinMatches = failure.reason { self = .pins } else { self = .secure }
        case .refusedByReview, .unauthenticated: self = .secure
        default: self = .tls
        }
    }

    private init(reason error: ClientError) {
        switch error.reason {
        case .invalidRequest: self = Self.isOfAnotherScheme(error.url) ? .other : .url
        case .serialization: self = .url
        case .invalidSecurityPolicy, .secureConnectionFailed, .clientCertificateRequired,
            .clientCertificateRejected, .invalidClientCertificate:
            self = .secure
        case .clearTextRefused: self = .pins
        case .invalidProxy: self = .proxyNameNotResolved
        case .proxyFailed, .proxyAuthenticationRequired: self = .proxy
        case .nameNotResolved: self = .nameNotResolved
        case .cannotConnect: self = .notConnected
        case .connectionLost, .badResponse: self = .lost
        case .timedOut: self = .timedOut
        case .unacceptableStatus: self = .status
        case .contentUndecodable: self = .undecodable
        case .contentTooLong: self = .tooLong
        case .tooManyRedirects: self = .redirects
        case .contentNotRepeatable: self = .contentNotRepeatable
        case .contentFailed: self = .content
        case .fileFailed: self = .file
        case .outOfResources: self = .resources
        case .authenticationFailed: self = .authentication
        default: self = .other
        }
    }

    /// Whether a URL is absolute, with a scheme other than http and https.
    private static func isOfAnotherScheme(_ url: String) -> Bool {
        guard let mark = url.firstRange(of: "://") else { return false }
        let scheme = url[..<mark.lowerBound].lowercasedASCII
        let isScheme = scheme.utf8.allSatisfy {
            ASCII.isLetter($0) || ASCII.isDigit($0) || "+-.".utf8.contains($0)
        }
        return isScheme && !["", "http", "https"].contains(scheme)
    }
}

/// An error that ends a client command, with the exit code.
struct ClientCommandError: Error, CustomStringConvertible {
    let exit: ClientExit
    let description: String

    init(_ exit: ClientExit, _ description: String) {
        self.exit = exit
        self.description = description
    }

    /// An error with the URL, the reason's token, what happened and, if no pin matched, the pins
    /// of the server's chain.
    init(_ error: ClientError, pins: [String]) {
        var text = error.url.isEmpty ? "" : "\(error.url): "
        text += "\(error.token): \(error.explanation)"
        if !error.presentedPins.isEmpty {
            text += "\n  expected one of: \(pins.joined(separator: " "))"
            text += "\n  the server presented: \(error.presentedPins.joined(separator: " "))"
        }
        if let data = error.resumeData {
            text += "\n  \(data.receivedBytes) bytes are kept in \(data.partialFile); "
            text += "--resume continues the download"
        }
        self.init(ClientExit(error), text)
    }
}
