extension Exchange {
    /// A stored response that is not sent in one step: it is read from the disk, or translated.
    struct Serving {
        /// Reads the body part by part.
        private(set) var reader: StoredBodyReader?
        /// A response in the origin's form that is being translated for the client.
        private(set) var translation: StoredTranslation?

        mutating func read(with reader: StoredBodyReader) { self.reader = reader }

        /// All of it has been read, or nothing more will be.
        mutating func endReading() { reader = nil }

        mutating func translate(_ translation: StoredTranslation) {
            self.translation = translation
        }

        mutating func endTranslation() { translation = nil }

        mutating func takeTranslation() -> StoredTranslation? { translation.take() }
    }
}
