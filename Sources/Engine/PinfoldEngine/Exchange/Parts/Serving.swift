import CachePolicy
import CacheStore
import HTTPCore

/// The parts of a multipart/byteranges that are still to be sent, and the response that they are
/// of.
final class RangesToSend {
    let response: CachedResponse
    private var parts: ArraySlice<MultipartRanges.Part>
    let end: [UInt8]

    init(_ ranges: MultipartRanges, of response: CachedResponse) {
        self.response = response
        parts = ranges.parts[...]
        end = ranges.end
    }

    func next() -> MultipartRanges.Part? { parts.popFirst() }
}

extension Exchange {
    /// A stored response that is not sent in one step: it is read from the disk, or translated.
    struct Serving {
        /// Reads the body part by part.
        private(set) var reader: StoredBodyReader?
        /// What it waits for before it begins to read: a part under way, which goes on for it.
        private(set) var awaited: StoredParts?
        /// A response in the origin's form that is being translated for the client.
        private(set) var translation: StoredTranslation?
        /// A stored response that waits for the form in which it is sent.
        private(set) var form: StoredForm?
        /// The trailers that are sent after the content.
        private(set) var trailers: TrailerSection?

        /// The parts of a multipart/byteranges that are still to be sent.
        private(set) var ranges: RangesToSend?

        /// What produces the content of a response of the gateway itself, piece by piece; `nil`
        /// unless it has such a one.
        private(set) var pieces: LocalPieces?

        mutating func send(_ pieces: @escaping LocalPieces) { self.pieces = pieces }

        mutating func endPieces() { pieces = nil }

        mutating func send(_ ranges: RangesToSend) { self.ranges = ranges }

        mutating func endRanges() { ranges = nil }

        mutating func await(_ parts: StoredParts?) { awaited = parts }

        mutating func takeAwaited() -> StoredParts? { awaited.take() }

        mutating func read(with reader: StoredBodyReader) { self.reader = reader }

        /// All of it has been read, or nothing more will be.
        mutating func endReading() {
            reader = nil
            trailers = nil
        }

        /// The trailers follow the content.
        mutating func end(with trailers: TrailerSection) { self.trailers = trailers }

        mutating func wait(for form: StoredForm) { self.form = form }

        mutating func takeForm() -> StoredForm? { form.take() }

        mutating func translate(_ translation: StoredTranslation) {
            self.translation = translation
        }

        mutating func endTranslation() { translation = nil }

        mutating func takeTranslation() -> StoredTranslation? { translation.take() }
    }
}
