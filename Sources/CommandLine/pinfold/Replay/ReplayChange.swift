import PinfoldEngine

/// How one request fares differently.
struct ReplayChange: Hashable {
    /// What is different, the most serious first.
    enum Kind: String, CaseIterable {
        case refused, allowed, reason, handling, pins, entry, rule, reported, cache

        /// The heading of such changes.
        var title: String {
            switch self {
            case .refused: "now refused"
            case .allowed: "no longer refused"
            case .reason: "refused for another reason"
            case .handling: "handled differently"
            case .pins: "reported because of pins"
            case .entry: "another entry of hosts"
            case .rule: "another rule decides"
            case .reported: "reported by other rules"
            case .cache: "the cache is used differently"
            }
        }
    }

    let kind: Kind
    let before: String
    let after: String

    /// What differs for a request; empty for nothing. If it is refused in one case and not in the
    /// other, the rest follows from that.
    static func all(from before: Standing, to after: Standing) -> [ReplayChange] {
        if before == after { return [] }
        switch (before.refusal, after.refusal) {
        case (nil, .some): return [Self(.refused, before.refusalText, after.refusalText)]
        case (.some, nil): return [Self(.allowed, before.refusalText, after.refusalText)]
        case (.some(let one), .some(let other)):
            let isSame =
                one == other && (before.by == nil || after.by == nil || before.by == after.by)
            return isSame ? [] : [Self(.reason, before.refusalText, after.refusalText)]
        case (nil, nil): break
        }
        var changes: [ReplayChange] = []
        func compare(_ kind: Kind, _ one: String?, _ other: String?) {
            guard let one, let other, one != other else { return }
            changes.append(
                Self(kind, one.isEmpty ? "none" : one, other.isEmpty ? "none" : other))
        }
        compare(.handling, before.handling, after.handling)
        compare(.pins, before.reportedPins, after.reportedPins)
        compare(.entry, before.entry, after.entry)
        compare(.rule, before.rule, after.rule)
        compare(.reported, before.reported, after.reported)
        if let one = before.cache, let other = after.cache, one != other {
            changes.append(Self(.cache, one.text, one.text(beside: other)))
        }
        return changes
    }

    private init(_ kind: Kind, _ before: String, _ after: String) {
        (self.kind, self.before, self.after) = (kind, before.cut(), after.cut())
    }

    /// `denied-by-rule by block-ads (was: passed)`.
    var text: String { "\(after) (was: \(before))" }
}

extension CacheUse {
    fileprivate var text: String { isUsed ? "used" : "not used" }

    /// What another use is in words, beside this one.
    fileprivate func text(beside other: CacheUse) -> String {
        if isUsed != other.isUsed { return other.text }
        if target != other.target || fields != other.fields { return "used, with another key" }
        return "used, by other rules"
    }
}
