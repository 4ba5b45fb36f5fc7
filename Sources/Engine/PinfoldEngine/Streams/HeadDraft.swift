import EventLoop
import HTTPCore

/// A message head being written to a stream: the stream begins it with its start line, the user
/// appends field lines (name, colon, value, CRLF: the form in which heads are parsed and stored),
/// and the stream completes it as its protocol version requires.
///
/// Nothing is copied in between. A stream of a version without start lines begins with nothing, and
/// encodes the field lines when it sends the head.
public struct HeadDraft: ~Copyable {
    @usableFromInline let buffer: Buffer
    /// The writer for field lines.
    public var fields: HeadWriter

    /// - Parameter buffer: empty, with room for all of the head.
    @inlinable public init(_ buffer: consuming Buffer) {
        fields = HeadWriter(buffer.writable)
        self.buffer = buffer
    }

    /// Completes the head; returns `nil` if it did not fit.
    @inlinable public consuming func finished() -> Buffer? {
        guard !fields.overflowed else { return nil }
        buffer.end = fields.count
        return buffer
    }
}
