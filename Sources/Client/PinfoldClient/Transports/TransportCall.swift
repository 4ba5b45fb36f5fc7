import HTTPTypes

/// What a transport's task tells the loop.
enum TransportEvent: Sendable {
    /// The head, and the length of the content if it is known.
    case head(HTTPResponse, length: Int?)
    /// A part of the content. The task waits until it has been accepted, or is not wanted.
    case part([UInt8], AwaitedWork<Void>)
    case end(HTTPFields)
    case failed(any Error)
    /// The content of the request has room again.
    case drained
}

/// The task in which a transport answers a request.
enum TransportCall {
    /// Begins the call.
    ///
    /// - Parameter tell: Tells the loop what happens, in this order.
    static func begin(
        _ request: TransportRequest, of transport: any SessionTransport,
        tell: @escaping @Sendable (TransportEvent) -> Void
    ) -> Task<Void, Never> {
        Task {
            do {
                let response = try await transport.response(to: request)
                if response.delay > .zero { try await Task.sleep(for: response.delay) }
                tell(.head(response.head, length: response.length))
                let pass: @Sendable ([UInt8]) async -> Bool = { part in
                    guard !Task.isCancelled else { return false }
                    guard !part.isEmpty else { return true }
                    let isAccepted: Void? = await withCheckedContinuation { continuation in
                        tell(.part(part, AwaitedWork(continuation)))
                    }
                    return isAccepted != nil
                }
                switch response.content {
                case .bytes(let bytes): guard await pass(bytes) else { return }
                case .source(let source): try await source(pass)
                }
                if let error = response.error { throw error }
                tell(.end(response.trailers))
            } catch {
                tell(.failed(error))
            }
        }
    }
}
