/// The limits for a message head. A head at a limit is accepted, one beyond it is refused.
public struct HeadLimits: Sendable, Equatable {
    /// The maximum size of a head, including its empty line: 431 if exceeded.
    public var headBytes: Int
    /// The maximum number of field lines in a head: 431 if exceeded.
    public var fields: Int
    /// The maximum size of a request target: 414 if exceeded.
    public var targetBytes: Int
    /// The maximum size of a method: 501 if exceeded (RFC 9112 §3).
    public var methodBytes: Int
    /// The maximum number of options in all Connection fields: 400 if exceeded. Each is compared
    /// with each unknown field's name, so this limits work, not memory.
    public var connectionOptions: Int

    /// Creates limits, all of which must be positive; `headBytes` and `targetBytes` must be below
    /// 2^31.
    public init(
        headBytes: Int = 32 * 1024, fields: Int = 128, targetBytes: Int = 16 * 1024,
        methodBytes: Int = 32, connectionOptions: Int = 32
    ) {
        precondition(headBytes > 0 && headBytes < Int(Int32.max))
        precondition(targetBytes > 0 && targetBytes < Int(Int32.max))
        precondition(fields > 0 && methodBytes > 0 && connectionOptions > 0)
        self.headBytes = headBytes
        self.fields = fields
        self.targetBytes = targetBytes
        self.methodBytes = methodBytes
        self.connectionOptions = connectionOptions
    }
}

/// The limits for a chunked body (RFC 9112 §7.1), apart from its data.
public struct ChunkedLimits: Sendable, Equatable {
    /// The maximum size of the chunk extensions of a message, including semicolons: 413 if
    /// exceeded.
    public var extensionBytes: Int
    /// The maximum size of the trailer section, including its empty line: 431 if exceeded.
    public var trailerBytes: Int
    /// The maximum number of field lines in the trailer section: 431 if exceeded.
    public var trailerFields: Int

    /// Creates limits.
    public init(
        extensionBytes: Int = 4096, trailerBytes: Int = 8 * 1024, trailerFields: Int = 32
    ) {
        precondition(trailerBytes > 0 && trailerBytes < Int(Int32.max))
        self.extensionBytes = extensionBytes
        self.trailerBytes = trailerBytes
        self.trailerFields = trailerFields
    }
}
