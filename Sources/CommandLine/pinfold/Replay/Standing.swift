import PinfoldEngine
import PinfoldTLS
import Trust

/// What becomes of a request: as a configuration says, or as the log does. What is not known is not
/// compared.
struct Standing: Equatable {
    /// Why it is refused: a reason token; `nil` if it is let through.
    var refusal: String?
    /// What refuses it: a rule or a pinset.
    var by: String?
    /// How it is handled; `nil` if that is not known, or it is refused.
    var handling: String?
    /// The name of the entry of `hosts`; `nil` if that is not known.
    var entry: String?
    /// The rule that decides: empty if none does, and `nil` if that is not known.
    var rule: String?
    /// The rules that only report, separated by commas; likewise.
    var reported: String?
    /// The pinset by which a server would be reported; likewise.
    var reportedPins: String?
    /// What the cache is used for; `nil` if that is not known.
    var cache: CacheUse?

    /// The refusal in words: `denied-by-rule by block-ads`, or `passed`.
    var refusalText: String {
        guard let refusal else { return "passed" }
        return by.map { "\(refusal) by \($0)" } ?? refusal
    }
}

extension Standing {
    /// As a configuration says.
    init(_ verdict: RequestVerdict) {
        entry = verdict.label == "none" ? nil : verdict.label
        guard let handling = verdict.handling else {
            refusal = "no-such-listener"
            return
        }
        if let error = verdict.refusal {
            refusal = error.reason.token
            switch error {
            case .deniedByRule(let denial): by = denial.rule
            case .tlsFailed(.trust(let failure)): by = failure.pinset
            default: break
            }
        } else {
            self.handling = handling.word
        }
        // Before it is known what it is for, no rule is asked.
        guard verdict.label != "none" else { return }
        rule = verdict.rule ?? ""
        reported = verdict.reported.joined(separator: ",")
    }

    /// What becomes of a tunnel whose client may reject the gateway's certificates, once the log
    /// says whether it did.
    mutating func settle(_ verdict: RequestVerdict, by logged: Standing) {
        guard handling != nil, case .interceptOrInspect? = verdict.handling,
            logged.handling == "inspected"
        else { return }
        handling = logged.handling
    }

    /// As the log says.
    init(logged line: LogLine, _ form: PastRequest.Form) {
        let reason = line.text(.reason)
        if let reason, ReasonKinds.ofConfiguration.contains(reason) { refusal = reason }
        let rule = line.text(.rule)
        if refusal == Reason.access(.deniedByRule).token { by = rule }
        let label = line.text(.host)
        if let label, label != "none", label != "other" { entry = label }
        // The log may have been told to leave them out (`log.access.fields`).
        self.rule = rule
        reported = line.text(.reported)
        guard refusal == nil, line.format == .json else { return }
        switch form {
        case .tunnel:
            if line.has(.intercepted) {
                handling = "intercepted"
            } else if line.has(.inspected) {
                handling = "inspected"
            } else if line.text(.status) == "200", !line.has(.passed) {
                handling = "tunnelled"
            }
        case .named(isSecure: false):
            // By a proxy, TLS may be spoken with that.
            guard line.has(.upstream), !line.has(.parent), reason == nil else { return }
            handling = line.has(.upstreamTLS) ? "upgraded" : "clear text"
        case .named, .inTunnel, .path: break
        }
    }
}

extension RouteExplanation.Handling {
    /// It in a word, as far as an access log tells it, too.
    fileprivate var word: String {
        switch self {
        case .refused: "refused"
        case .tunnel: "tunnelled"
        case .inspect: "inspected"
        case .intercept, .interceptOrPass, .interceptOrInspect: "intercepted"
        case .upgrade: "upgraded"
        case .verified: "verified TLS"
        case .clearText: "clear text"
        }
    }
}
