import HTTPCore

/// What a recording is to have.
struct RecordingOptions: Sendable {
    /// The most bytes of each body that may be asked for.
    static let maximumBodyBytes = 4 << 20

    var filter: FlowFilter
    /// Whether who records may see who asked, and what exactly: otherwise there are no heads, no
    /// queries and no bodies.
    var isFull = false
    /// The most bytes of each body, before it is decoded and after; 0 for no bodies.
    var bodyBytes = 0
    /// Whether the values of secret fields are recorded.
    var hasSecrets = false

    /// The parameters of its resource.
    static let parameters: [AdminResource.Parameter] =
        FlowFilter.matching + [
            AdminResource.Parameter(
                name: "bodies",
                description: "The most bytes of each body, up to \(maximumBodyBytes), before it is "
                    + "decoded and after; 0, the default, for no bodies; with the token."),
            AdminResource.Parameter(
                name: "secrets",
                description: "true: with the values of Authorization, Cookie and the like; with "
                    + "the token, and only where admin.recordSecrets allows it."),
        ]

    /// Reads them from a query.
    /// - Parameters:
    ///   - isFull: whether who asks has proved to be an operator.
    ///   - allowsSecrets: whether the configuration does.
    init(_ query: AdminQuery, isFull: Bool, allowsSecrets: Bool) throws(AdminError) {
        filter = try FlowFilter(query, isFull: isFull, taking: Self.parameters)
        self.isFull = isFull
        if let text = query["bodies"] {
            guard let count = Int(text), (0...Self.maximumBodyBytes).contains(count) else {
                throw FlowFilter.invalid(
                    "bodies: expected a number of bytes from 0 to \(Self.maximumBodyBytes)")
            }
            bodyBytes = count
        }
        if let text = query["secrets"] {
            guard text == "true" else { throw FlowFilter.invalid("secrets: expected true") }
            hasSecrets = true
        }
        guard isFull || bodyBytes == 0 && !hasSecrets else {
            throw AdminError(
                403, "token-needed", "Token needed",
                "bodies and secrets are only for those with the token, a certificate or the Unix "
                    + "socket")
        }
        guard allowsSecrets || !hasSecrets else {
            throw AdminError(
                403, "secrets-not-allowed", "Secrets not allowed",
                "secrets are not recorded; admin.recordSecrets: true would allow it")
        }
    }

    /// Those for exchanges that a filter accepts.
    init(_ filter: FlowFilter, isFull: Bool, bodyBytes: Int = 0, hasSecrets: Bool = false) {
        self.filter = filter
        self.isFull = isFull
        self.bodyBytes = bodyBytes
        self.hasSecrets = hasSecrets
    }
}
