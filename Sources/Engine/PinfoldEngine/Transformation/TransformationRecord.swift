import HTTPCore
import PinfoldMetrics

/// What the route's rules have changed in one exchange's messages, for metrics and the access log.
package final class TransformationRecord {
    /// The content of one message.
    package struct Change {
        /// What was done, as the access log names it.
        package var steps: [String]
        /// The size of the received content, and of the content sent in its place.
        package var bytesIn: Int
        package var bytesOut: Int
        package var microseconds: UInt64

        init(steps: [String], bytesIn: Int, bytesOut: Int, microseconds: UInt64) {
            self.steps = steps
            self.bytesIn = bytesIn
            self.bytesOut = bytesOut
            self.microseconds = microseconds
        }

        /// The change to a response's content.
        init(_ content: ResponseContent) {
            self.init(
                steps: content.steps, bytesIn: content.origin.count,
                bytesOut: content.count, microseconds: content.microseconds)
        }
    }

    package var request: Change?
    package var response: Change?

    init() {}

    /// The steps for both messages, for the access log.
    package var text: [UInt8] {
        let steps = (request?.steps ?? []) + (response?.steps ?? [])
        return Array(steps.joined(separator: ",").utf8.prefix(200))
    }
}

/// A request's head as the client sent it, if rules have replaced it, with what the access log
/// shows of it.
package struct ClientHead: Sendable {
    package let bytes: [UInt8]
    package let method: ByteRange
    package let target: ByteRange
    /// `host[:port]` as sent.
    package let authority: ByteRange
    /// The path and query.
    let path: ByteRange
    /// The method as such, whose name `method` is.
    let knownMethod: Method
    package let userAgent: ByteRange
    package let referer: ByteRange

    init(_ request: borrowing RequestHead, _ bytes: UnsafeRawBufferPointer) {
        self.bytes = Array(bytes)
        method = request.methodRange
        target = request.target
        authority = request.authority
        path = request.path
        knownMethod = request.method
        userAgent = request.fields.first(.userAgent)?.value ?? ByteRange()
        referer = request.fields.first(.referer)?.value ?? ByteRange()
    }
}

extension Exchange {
    /// The request's head as the client sent it; `nil` if it was not replaced.
    package var clientHead: ClientHead? { upload.rewritten?.clientHead }

    /// Counts what was done, by the route.
    func countTransformations(route: RouteIndex) {
        guard let transformed = remarks.transformed else { return }
        let changes = [
            (MetricDirection.request, transformed.request),
            (.response, transformed.response),
        ]
        for case (let direction, let change?) in changes {
            environment.metrics.recordTransformation(
                route: route, direction, isChanged: !change.steps.isEmpty,
                bytes: (UInt64(change.bytesIn), UInt64(change.bytesOut)),
                microseconds: change.microseconds)
        }
    }
}
