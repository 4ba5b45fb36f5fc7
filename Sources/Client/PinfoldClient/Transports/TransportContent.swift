/// The content of a request that reaches a ``SessionTransport``, or of the response that it gives,
/// part by part. It can be read once, by one task, and need not be read.
///
/// A transport that passes exchanges on can read it and put other content in its place:
///
///     var response = try await base.response(to: request)
///     let bytes = try await response.content.collect()
///     response.content = TransportContent(bytes + [0x0A])
///     response.head.headerFields[.contentLength] = nil
public struct TransportContent: AsyncSequence, Sendable {
    public typealias Element = [UInt8]
    /// Returns the next part, or `nil` at the end.
    fileprivate typealias Pull = (isolated (any Actor)?) async throws -> [UInt8]?

    private enum Source: Sendable {
        case bytes([UInt8])
        case pipe(ContentPipe)
        /// Begins to read a sequence.
        case sequence(@Sendable () -> Pull)
    }

    private let source: Source
    /// Is told of every part that is read, and of the end.
    private var observer: (@Sendable ([UInt8]?) -> Void)?

    init(pipe: ContentPipe) { source = .pipe(pipe) }

    /// Content in memory.
    public init(_ bytes: [UInt8]) { source = .bytes(bytes) }

    /// Content that arrives part by part. The next part is requested when the previous one has been
    /// accepted. An error that the sequence throws ends the exchange.
    public init<Parts: AsyncSequence & Sendable>(_ parts: Parts) where Parts.Element == [UInt8] {
        source = .sequence {
            var iterator = parts.makeAsyncIterator()
            return { actor in try await iterator.next(isolation: actor) }
        }
    }

    /// All of the content, if it is in memory.
    var bytes: [UInt8]? { if case .bytes(let bytes) = source { bytes } else { nil } }

    /// The length of the content, if it is known before it is read.
    var length: Int? { bytes?.count }

    public func makeAsyncIterator() -> Iterator {
        switch source {
        case .bytes(let bytes):
            var rest: [UInt8]? = bytes
            return Iterator(observer) { _ in rest.take() }
        case .pipe(let pipe): return Iterator(observer) { _ in try await pipe.next() }
        case .sequence(let begin): return Iterator(observer, begin())
        }
    }

    /// Iterates over the parts as they arrive.
    public struct Iterator: AsyncIteratorProtocol {
        private let pull: Pull
        private let observer: (@Sendable ([UInt8]?) -> Void)?

        fileprivate init(_ observer: (@Sendable ([UInt8]?) -> Void)?, _ pull: @escaping Pull) {
            (self.observer, self.pull) = (observer, pull)
        }

        /// Returns the next part, which is never empty, or `nil` at the end.
        ///
        /// - Throws: `CancellationError` if a request ends before its content; the error of a
        ///   sequence.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws -> [UInt8]? {
            while let part = try await pull(actor) {
                guard !part.isEmpty else {
                    try Task.checkCancellation()
                    continue
                }
                observer?(part)
                return part
            }
            observer?(nil)
            return nil
        }
    }

    /// Collects all of the content.
    public func collect() async throws -> [UInt8] {
        if let bytes, observer == nil { return bytes }
        var all: [UInt8] = []
        for try await part in self { all += part }
        return all
    }

    /// The same content, of which one more is told as it is read: of its parts, and with `nil` of
    /// its end.
    func observed(by added: @escaping @Sendable ([UInt8]?) -> Void) -> TransportContent {
        var content = self
        let earlier = observer
        content.observer = { part in
            earlier?(part)
            added(part)
        }
        return content
    }
}
