import PinfoldTLS
import Trust

extension Pinset {
    /// The pins that have counters of their own, as written in reports.
    package var distinguishedPins: [String] {
        let texts = (try? TrustVerifier.pinTexts(of: self)) ?? []
        return Array(texts.prefix(PinMatches.distinguishedPins))
    }
}
