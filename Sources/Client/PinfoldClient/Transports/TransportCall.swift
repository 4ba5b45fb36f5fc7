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
                for try await part in response.content {
                    guard !Task.isCancelled else { return }
                    let isAccepted: Void? = await withCheckedContinuation { continuation in
                        tell(.part(part, AwaitedWork(continuation)))
                    }
                    guard isAccepted != nil else { return }
                }
                if let error = response.error { throw error }
                var trailers = response.trailers
                if let later = response.laterTrailers { trailers.append(contentsOf: later()) }
                tell(.end(trailers))
            } catch {
                tell(.failed(error))
            }
        }
    }
}
