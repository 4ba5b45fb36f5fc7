import PinfoldTLS
import Trust

extension Pinset {
    /// The pins that are told apart when a server has them, as they are written in reports.
    package var distinguishedPins: [String] {
        let texts = (try? TrustJudge.pinTexts(of: self)) ?? []
        return Array(texts.prefix(PinMatches.toldApart))
    }
}
