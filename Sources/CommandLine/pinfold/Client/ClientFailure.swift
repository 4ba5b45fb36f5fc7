import ArgumentParser
import HTTPCore
import PinfoldClient
import PinfoldEngine
import PinfoldTLS

/// With what the commands of the client end: curl's numbers, where curl has one.
enum ClientExit: Int32, CaseIterable {
    /// Another scheme, for curl; here what it has no code for, too.
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

    /// What it stands for, in the help.
    var meaning: String {
        switch self {
        case .other: "a scheme other than http and https, also of a redirect, or anything else"
        case .url: "no request can be made of it: a malformed URL"
        case .proxyNameNotResolved: "the proxy's name has no address, or its URL is malformed"
        case .nameNotResolved: "the host's name has no address"
        case .notConnected: "no connection, to the server or the proxy"
        case .incomplete: "the content breaks off"
        case .status: "a status of 400 or more"
        case .file: "a file or standard output cannot be written, or a file exists"
        case .content: "what is to be sent cannot be read"
        case .resources: "no memory or no file descriptors are left"
        case .timedOut: "it took too long"
        case .range: "the server answers ranges wrongly: without --resume it may succeed"
        case .tls: "no TLS with the server: its port speaks another protocol, or it refuses"
        case .redirects: "too many redirects"
        case .empty: "the server closed the connection without a response"
        case .lost: "the connection was lost, or what came is no response"
        case .secure: "the server is not trusted: its chain, its name"
        case .undecodable: "the content is not what its Content-Encoding says"
        case .tooLong: "the content is too long to be kept in memory"
        case .contentNotRepeatable: "the content would have to be sent again, and cannot be"
        case .authorities: "a file of --cacert cannot be read"
        case .pins: "no pin matches or can be read, or clear text where pins ask for TLS"
        case .authentication:
            "no credentials can be sent as the server asks, or how it asks cannot be read"
        case .proxy: "the proxy refuses, or what it answers is no response"
        }
    }

    static let help =
        "Exits with 0 if every URL had a response with a status below 400, with 64 where the "
        + "command line is wrong; else with the number of the first that failed, in their "
        + "order:\n\n"
        + allCases.map { "  \($0.rawValue)\t\($0.meaning)" }.joined(separator: "\n")

    init(_ error: ClientError) {
        let download = error.underlying as? DownloadFailure
        let fault = (download?.underlying ?? error.underlying) as? ExchangeError
        switch download?.problem {
        case .range: self = .range
        case .length: self = .incomplete
        default: self = fault.flatMap { Self($0) } ?? Self(reason: error)
        }
    }

    /// What only the engine's fault tells apart; nil: the error's reason says enough.
    private init?(_ fault: ExchangeError) {
        switch fault {
        case .response(.truncatedBody): self = .incomplete
        case .upstreamClosed, .upstreamUnanswered(nil): self = .empty
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

    /// An absolute URL that is neither http nor https.
    private static func isOfAnotherScheme(_ url: String) -> Bool {
        guard let mark = url.firstRange(of: "://") else { return false }
        let scheme = url[..<mark.lowerBound].lowercasedASCII
        let isScheme = scheme.utf8.allSatisfy {
            ASCII.isLetter($0) || ASCII.isDigit($0) || "+-.".utf8.contains($0)
        }
        return isScheme && !["", "http", "https"].contains(scheme)
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
