import Trust

/// A pinset and the texts from which it was created.
package struct PinsetEntry: Sendable, Equatable {
    /// The requirements for a server. The pinset's name is the key under `pinsets`: letters,
    /// digits, `.`, `_` and `-`, at most 64 bytes.
    package var pinset: Pinset
    /// The pins as written, with file paths made absolute.
    package var pinTexts: [String] = []
    /// The absolute paths of the files that ``Pinset/anchors`` were read from.
    package var anchorPaths: [String] = []
    /// Where failures are reported; `nil` if they are not.
    package var reportTo: ReportDestination?

    /// Creates an entry without texts.
    package init(pinset: Pinset) {
        self.pinset = pinset
    }
}
