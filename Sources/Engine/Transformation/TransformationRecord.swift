import Transformation

/// What the rules of its route have changed of one exchange's messages, for metrics and the access
/// log.
package final class TransformationRecord {
    /// The content of one message.
    package struct Change {
        /// What was done, as the access log names it.
        package var steps: [String]
        /// Bytes of content that came, and that took its place, as they are sent.
        package var bytesIn: Int
        package var bytesOut: Int
        package var microseconds: UInt64
    }

    package var request: Change?
    package var response: Change?

    init() {}
}

extension Exchange {
    private var record: TransformationRecord {
        if let transformed { return transformed }
        let made = TransformationRecord()
        transformed = made
        return made
    }

    /// Notes what was done with the response's content.
    func note(response change: TransformationRecord.Change) { record.response = change }

    /// Notes what was done with the request's content.
    func note(request change: TransformationRecord.Change) { record.request = change }
}
