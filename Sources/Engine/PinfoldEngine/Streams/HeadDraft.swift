import EventLoop
import HTTPCore

/// A message head on its way to a stream: the stream has begun it with its start line, its user
/// appends field lines (name, colon, value, CRLF: the form in which heads are parsed and stored),
/// and the stream ends it with what belongs to its protocol version.
///
/// Nothing is copied between the three. A stream of a version without start lines begins with
/// nothing, and encodes the field lines when it sends the head.
package struct HeadDraft: ~Copyable {
    private let buffer: Buffer
    /// Where field lines go.
    package var fields: HeadWriter

    /// - Parameter buffer: empty, with room for all of the head.
    package init(_ buffer: consuming Buffer) {
        fields = HeadWriter(buffer.writable)
        self.buffer = buffer
    }

    /// Ends the head; nil when it did not fit.
    package consuming func finished() -> Buffer? {
        guard !fields.overflowed else { return nil }
        buffer.end = fields.count
        return buffer
    }
}
