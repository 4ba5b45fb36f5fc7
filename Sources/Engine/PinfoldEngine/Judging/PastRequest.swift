import HTTPCore

/// A request that was made, as far as a configuration decides what becomes of it.
package struct PastRequest: Sendable {
    /// The form in which it came.
    package enum Form: Sendable, Hashable {
        /// CONNECT, or what a listener takes for one.
        case tunnel
        /// It names its host, or is for the host that its connection was for.
        case named(isSecure: Bool)
        /// In a tunnel that the gateway intercepts.
        case inTunnel
        /// A path, to a reverse listener.
        case path
    }

    /// The name of the listener that it came through.
    package var listener: String
    package var client: IPAddress
    /// Who asked; `nil` if nobody proved to be anybody.
    package var user: String?
    package var form: Form
    /// The requested host, in lower case, an address without brackets; of no account with a
    /// ``Form/path``.
    package var host: String
    /// The requested port; likewise.
    package var port: UInt16
    package var method: Method
    /// The name of the method.
    package var methodName: [UInt8]
    /// The path and query as sent; empty for a tunnel.
    package var target: [UInt8]
    /// When it was made, in seconds since 1970.
    package var seconds: Int64
    /// The address of the host that was connected to, was tried last or was refused; `nil` if that
    /// is not known.
    package var address: IPAddress?

    package init(
        listener: String, client: IPAddress, user: String? = nil, form: Form, host: String,
        port: UInt16, method: Method, methodName: [UInt8], target: [UInt8], seconds: Int64,
        address: IPAddress? = nil
    ) {
        self.listener = listener
        self.client = client
        self.user = user
        self.form = form
        self.host = host
        self.port = port
        self.method = method
        self.methodName = methodName
        self.target = target
        self.seconds = seconds
        self.address = address
    }

    /// The length of the path, without the query, in ``target``.
    var pathCount: Int { target.firstIndex(of: UInt8(ascii: "?")) ?? target.count }
}

/// What becomes of such a request under a configuration.
package struct RequestVerdict: Sendable {
    /// How it is handled, or why it is refused; `nil` if there is no listener of its name.
    package var handling: RouteExplanation.Handling?
    /// The index of the entry of `hosts` that applies; `nil` if none does, or if it is refused
    /// before its host matters.
    package var entry: Int?
    /// That entry's name in logs; `default` if none applies, and `none` if its host does not
    /// matter.
    package var label: String
    /// The requested host, and the port that is connected to.
    package var host: String
    package var port: UInt16
    /// The name of the rule that decides; `nil` if none does.
    package var rule: String?
    /// The names of the rules before it that only report.
    package var reported: [String] = []
    /// Whether it also depends on the addresses of its host, none of which is known.
    package var needsAddress = false

    /// Why it is refused; `nil` if it is not.
    package var refusal: ExchangeError? {
        if case .refused(let refusal) = handling { refusal } else { nil }
    }

    /// Whether the server is verified before anything is sent to it.
    package var verifiesServer: Bool { handling?.verifiesServer ?? false }
}
