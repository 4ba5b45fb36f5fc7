import PinfoldClient

/// A port of the server.
enum Role: String, Hashable, CaseIterable {
    /// HTTP/1 in clear text and over TLS, and HTTP/2, of which only streams fail.
    case plain, tls, h2
    /// HTTP/2 of which connections fail; of which the rules are broken, until it is HTTP/1.
    case lossy, junk
    /// HTTP/1 that ends connections and does not say so.
    case fickle, fickleTLS
    /// Certificates of an unknown authority, for another name, and that has expired.
    case unknown, misnamed, expired
    /// Handshakes that end, that are none, and that do not go on.
    case hangup, garbage, mute
    /// Connections that are refused, and that are never established.
    case refused, full

    var scheme: String {
        switch self {
        case .plain, .fickle, .refused, .full: "http"
        default: "https"
        }
    }
}

/// A session of those that calls use.
enum SessionName: Hashable, CaseIterable {
    /// Lives as long as the program; the others, as long as a round.
    case lasting
    case direct
    /// Four requests to an origin, the latest first.
    case narrow
    case cached
    /// Its requests are sent by another session, and recorded.
    case decorated
    /// Has an interceptor with tokens that are soon used up, and one that fails to refresh them.
    case token, failing
    /// Expects another key of the servers.
    case pinned
    /// Waits for connections for a quarter of a second.
    case impatient
    /// Has no network.
    case mock
    /// Is invalidated after a hundred requests, while they run.
    case brief

    static let any: [SessionName] = [
        .lasting, .lasting, .direct, .direct, .narrow, .decorated, .brief,
    ]
}

/// How a caller makes a request, and what it does with the response.
enum Way: Hashable, CaseIterable {
    case data, whole, part, unread, task, file
}

/// What a request has.
enum Upload: Hashable, CaseIterable {
    case bytes, file, stream, repeating, source
}

/// What may happen to a request, and how calls may end then.
struct Fault {
    /// What the path says, which the server knows.
    let path: String
    /// What reports call it.
    let name: String
    /// How often it is chosen, relative to the others.
    let weight: Int
    let roles: [Role]
    let kinds: Set<Kind>
    var sessions = SessionName.any
    var ways = Way.allCases
    /// Whether it happens only when the head has arrived, so that a caller who does not read the
    /// content may not see it.
    var isLate = false
    /// The sizes of contents of responses.
    var sizes = 0...20_000
    /// The contents of requests, and their sizes.
    var uploads: [Upload] = []
    var uploadSizes = 0...100_000
    var uploadFault = UploadFault.none
    var method = HTTPRequest.Method.get
    /// How often a request fails before it succeeds, or is redirected.
    var times = 0
    var retries: RetryPolicy?
    /// Where a redirect leads.
    var target: Target?
    /// The longest content that the caller accepts.
    var most: Int?
    /// Whether the request waits for the server to ask for its content.
    var expects = false
    /// The milliseconds after which the caller does not wait any longer.
    var timeout: Int?
    /// Requests with the same path, so that responses are stored: none if 0.
    var paths = 0
    /// Whether the connection is made by the scheme that the port does not speak.
    var isSchemeWrong = false

    /// What is wrong with the content of a request.
    enum UploadFault { case none, throwing, short }

    /// Where redirects lead: to a path of a port, or to something else.
    enum Target {
        case port(Role, String, status: Int)
        case url(String)
    }

    init(
        _ path: String, _ weight: Int, _ roles: [Role], _ kinds: Set<Kind>, name: String? = nil,
        _ change: (inout Fault) -> Void = { _ in }
    ) {
        (self.path, self.weight, self.roles, self.kinds) = (path, weight, roles, kinds)
        self.name = name ?? path
        change(&self)
    }
}

extension Fault {
    private static let h1: [Role] = [.plain, .tls]
    private static let every: [Role] = [.plain, .tls, .h2]
    private static let again = RetryPolicy(
        maximumAttempts: 4, firstDelayMilliseconds: 4, maximumDelayMilliseconds: 20)

    static let all = none + uploads + followed + connecting + broken + streams + connections

    /// Exchanges that succeed.
    private static let none: [Fault] = [
        Fault("whole", 200, every, [.right]),
        Fault("whole", 6, every, [.right], name: "large") { $0.sizes = 100_000...1_000_000 },
        Fault("whole", 10, every, [.right], name: "head") {
            ($0.method, $0.ways) = (.head, [.data, .whole, .task])
        },
        Fault("cacheable", 20, every, [.right]) {
            ($0.sessions, $0.sizes, $0.paths) = ([.cached], 700...700, 40)
        },
        Fault("empty", 10, every, [.right]) { $0.ways = [.data, .whole, .task] },
        Fault("closing", 40, h1, [.right]),
        // Lost requests are sent again, but only if they may.
        Fault("unannounced", 30, [.fickle, .fickleTLS], [.right]),
        Fault("unannounced", 15, [.fickle, .fickleTLS], [.right, .lost], name: "unannounced-post") {
            ($0.uploads, $0.method) = (Upload.allCases, .post)
        },
        Fault("unsized", 20, every, [.right]),
        Fault("chunked", 40, every, [.right]),
        Fault("interim", 10, every, [.right]),
        Fault("dripping", 10, every, [.right]),
        Fault("gzip", 15, every, [.right]) {
            ($0.sizes, $0.ways) = (4000...4000, [.data, .whole, .part, .unread, .task])
        },
        Fault(
            "mock", 20, [.plain],
            [
                .right, .lost, .late, .untrusted, .failed(.cannotConnect),
                .failed(.nameNotResolved), .failed(.transportFailed),
            ]
        ) {
            ($0.sessions, $0.isLate) = ([.mock], true)
        },
    ]

    private static let uploads: [Fault] = [
        Fault("upload", 40, every, [.right]) { ($0.uploads, $0.method) = (Upload.allCases, .put) },
        Fault("upload-expected", 10, h1, [.right]) {
            ($0.uploads, $0.method, $0.expects) = (Upload.allCases, .post, true)
        },
        Fault("refuse-expectation", 6, h1, [.right]) {
            ($0.uploads, $0.method, $0.expects) = ([.bytes, .file, .repeating], .post, true)
            $0.uploadSizes = 1...100_000
        },
        Fault("reject-expectation", 6, h1, [.status(403)]) {
            ($0.uploads, $0.method, $0.expects) = (Upload.allCases, .post, true)
            $0.uploadSizes = 1...100_000
        },
        Fault("upload-reset", 8, every, [.lost]) {
            ($0.uploads, $0.method) = (Upload.allCases, .post)
            $0.uploadSizes = 500_000...2_000_000
        },
        Fault("upload-early", 8, every, [.status(413), .lost]) {
            ($0.uploads, $0.method) = (Upload.allCases, .post)
            $0.uploadSizes = 500_000...2_000_000
        },
        Fault("upload-stall", 3, every, [.late]) {
            ($0.uploads, $0.method, $0.timeout) = (Upload.allCases, .post, 300)
            $0.uploadSizes = 500_000...1_000_000
        },
        Fault("upload", 8, every, [.failed(.contentFailed)], name: "upload-throws") {
            ($0.uploads, $0.method) = ([.stream, .repeating, .source], .post)
            ($0.uploadFault, $0.uploadSizes) = (.throwing, 1...200_000)
        },
        Fault("upload", 6, every, [.failed(.contentFailed)], name: "upload-short") {
            ($0.uploads, $0.method) = ([.stream, .repeating, .source], .post)
            ($0.uploadFault, $0.uploadSizes) = (.short, 1...200_000)
        },
        Fault("redirect-to", 4, every, [.failed(.contentNotRepeatable)], name: "redirect-once") {
            ($0.uploads, $0.method, $0.uploadSizes) = ([.stream], .put, 1...10_000)
            $0.target = .port(.plain, "upload", status: 307)
        },
    ]

    /// Requests that are followed by others.
    private static let followed: [Fault] = [
        Fault("redirect", 20, every, [.right]) { $0.times = 3 },
        Fault("redirect-to", 10, every, [.right]) { $0.target = .port(.tls, "whole", status: 302) },
        Fault("redirect-to", 5, every, [.right]) { $0.target = .port(.h2, "whole", status: 308) },
        Fault("redirect-to", 4, every, [.failed(.cannotConnect)], name: "redirect-refused") {
            $0.target = .port(.refused, "whole", status: 301)
        },
        Fault("redirect-to", 4, every, [.lost], name: "redirect-lost") {
            $0.target = .port(.plain, "close-early", status: 303)
        },
        Fault("redirect-to", 4, every, [.failed(.redirectRefused)], name: "redirect-scheme") {
            $0.target = .url("ftp://127.0.0.1/file")
        },
        Fault("loop", 2, every, [.failed(.tooManyRedirects)]),
        Fault("two-locations", 3, h1, [.bad]),
        Fault("flaky", 15, every, [.right]) { ($0.times, $0.retries) = (2, again) },
        Fault("flaky-connection", 12, every, [.right]) { ($0.times, $0.retries) = (3, again) },
        Fault("busy", 5, every, [.status(503)]) { $0.retries = again },
        Fault("protected", 25, every, [.right]) { $0.sessions = [.token] },
        Fault(
            "protected", 10, every,
            [
                .right, .failed(.requestAdaptationFailed),
                .failed(.requestRetryFailed),
            ], name: "refresh-fails"
        ) { $0.sessions = [.failing] },
    ]

    /// Connections that are not established.
    private static let connecting: [Fault] = [
        Fault("whole", 30, [.refused], [.failed(.cannotConnect)], name: "refused"),
        Fault("whole", 4, [.full], [.late], name: "full") { $0.sessions = [.impatient] },
        Fault("whole", 4, [.mute], [.late], name: "mute") { $0.sessions = [.impatient] },
        Fault("whole", 8, [.hangup], [.lost], name: "hangup"),
        Fault("whole", 8, [.garbage], [.untrusted], name: "garbage"),
        Fault("whole", 8, [.unknown], [.untrusted], name: "unknown"),
        Fault("whole", 6, [.misnamed], [.untrusted], name: "misnamed"),
        Fault("whole", 6, [.expired], [.untrusted], name: "expired"),
        Fault("whole", 8, [.tls, .h2], [.untrusted], name: "pinned") { $0.sessions = [.pinned] },
        Fault("whole", 4, [.plain], [.untrusted], name: "https-to-http") {
            $0.isSchemeWrong = true
        },
        Fault("whole", 4, [.tls, .h2], [.lost, .bad], name: "http-to-https") {
            $0.isSchemeWrong = true
        },
    ]

    /// Responses that are not complete, not valid or not in time.
    private static let broken: [Fault] = [
        Fault("reset-early", 20, every, [.lost]),
        Fault("close-early", 20, h1, [.lost]),
        Fault("reset-head", 10, h1, [.lost]),
        Fault("close-head", 10, h1, [.lost]),
        Fault("reset-body", 15, every, [.lost]) { $0.isLate = true },
        Fault("close-body", 15, h1, [.lost]) { $0.isLate = true },
        Fault("close-chunk", 10, h1, [.lost]) { $0.isLate = true },
        Fault("bad-chunk", 10, h1, [.bad]) { ($0.isLate, $0.sizes) = (true, 1...20_000) },
        Fault("bad-head", 15, every, [.bad]),
        Fault("bad-gzip", 10, h1, [.failed(.contentUndecodable)]) {
            $0.ways = [.data, .whole, .part, .unread, .task]
            ($0.isLate, $0.sizes) = (true, 1...20_000)
        },
        Fault("slow-head", 6, every, [.late]) { $0.timeout = 300 },
        Fault("slow-body", 6, every, [.late]) { ($0.isLate, $0.timeout) = (true, 300) },
        Fault("whole", 5, every, [.failed(.contentTooLong)], name: "too-long") {
            ($0.sizes, $0.most, $0.ways) = (5000...50_000, 4000, [.data, .task])
        },
    ]

    /// Streams of HTTP/2 that fail.
    private static let streams: [Fault] = [
        Fault("close-body", 5, [.h2], [.lost, .bad]) { $0.isLate = true },
        Fault("refused", 6, [.h2], [.lost], name: "refused-stream"),
        Fault("refused-once", 8, [.h2], [.right]),
    ]

    /// Connections of HTTP/2 that fail. What runs beside it, fails as well.
    private static let connections =
        lossy(
            .lossy, [.right, .lost],
            [
                ("whole", 30), ("goaway", 8), ("goaway-after", 10), ("goaway-error", 8), ("cut", 8),
                ("cut-body", 8),
            ])
        + lossy(
            .junk, [.right, .lost, .bad],
            [("whole", 10), ("junk", 10), ("bad-block", 3), ("endless-block", 3)])

    private static func lossy(
        _ role: Role, _ kinds: Set<Kind>, _ paths: [(String, Int)]
    ) -> [Fault] {
        paths.map { path, weight in
            Fault(path, weight, [role], kinds, name: "\(role)-\(path)") { $0.isLate = true }
        }
    }

    /// A fault for each unit of weight.
    static let wheel = all.indices.flatMap { index in
        Array(repeating: index, count: all[index].weight)
    }
}
