import HTTPCore
import PinfoldConfiguration

/// A name in a step, with the place where it was written.
struct NamedStep {
    let step: FieldStep
    /// As it was written.
    let name: String
    let origin: ConfigurationError.Origin
    let path: String
    /// Whether it is what another name is turned into.
    var isNewName = false

    /// The names of the steps below a key; those that are none are left out.
    static func all(in field: Field) -> [NamedStep] {
        FieldStep.allCases.flatMap { step -> [NamedStep] in
            guard let field = field.key(step.rawValue) else { return [] }
            switch field.node.content {
            case .sequence: return (field.elements ?? []).compactMap { $0.name(in: step) }
            case .mapping(let entries):
                return entries.flatMap { entry -> [NamedStep] in
                    let path = Section.path(field.path, entry.key)
                    var names = [
                        NamedStep(
                            step: step, name: entry.key, origin: entry.keyOrigin, path: path)
                    ]
                    if step == .rename {
                        let value = Field(
                            node: entry.value, path: path, validation: field.validation)
                        if var new = value.name(in: step) {
                            new.isNewName = true
                            names.append(new)
                        }
                    }
                    return names
                }
            case .null, .scalar: return []
            }
        }
    }
}

extension Field {
    fileprivate func name(in step: FieldStep) -> NamedStep? {
        guard case .scalar(let text, _) = node.content else { return nil }
        return NamedStep(step: step, name: text, origin: node.origin, path: path)
    }
}

extension SnapshotReader {
    /// Reports names that several steps contradict each other about.
    ///
    /// - Parameter steps: all those below one key.
    func checkConsistency(_ steps: [NamedStep], by grammar: StepGrammar) {
        var first: [String: NamedStep] = [:]
        for step in steps where !step.isNewName {
            guard let earlier = first.updateValue(step, forKey: grammar.folded(step.name)) else {
                continue
            }
            let problem =
                earlier.step == step.step
                ? "stands in \(step.step) more than once"
                : "stands in \(earlier.step) and in \(step.step)"
            validation.report(
                step.origin, step.path, "\(quoted(step.name)) \(problem)",
                expected: "each name in one step, once")
        }
        for step in steps where step.isNewName {
            guard let other = first[grammar.folded(step.name)] else { continue }
            let problem: String
            switch other.step {
            // What is renamed to it goes through these.
            case .remove, .add, .defaults: continue
            case .rename: problem = "is renamed itself"
            case .set: problem = "is set, so that what is renamed to it is lost"
            }
            // To itself: reported where it is read.
            guard other.path != step.path else { continue }
            validation.report(
                step.origin, step.path, "\(quoted(step.name)) \(problem)",
                expected: "another name")
        }
    }

    /// Reports fields that are not the configuration's to change.
    ///
    /// - Parameters:
    ///   - translation: the key by which the content is changed; nil: it is not.
    func checkFields(_ steps: [NamedStep], translation: String?) {
        for step in steps {
            guard let reason = GatewayField.reason(step, translation: translation) else {
                continue
            }
            validation.report(
                step.origin, step.path, "\(quoted(step.name)) cannot be changed here: \(reason)",
                expected: "another field")
        }
    }
}

/// The request header fields that `headers` may not change.
enum GatewayField {
    private static let connection = "it is about one connection, which the gateway decides"
    private static let framing = "the gateway decides it with the content that it sends"
    private static let way = "it says which way a request has taken, which the gateway does"
    private static let conditions =
        "parts and conditions are for clients and the cache to ask for"

    /// Why a step may not name its field; nil: it may.
    static func reason(_ step: NamedStep, translation: String?) -> String? {
        // Servers commonly take one for the other.
        let name = String(step.name.lowercasedASCII.map { $0 == "_" ? "-" : $0 })
        let isWritten = step.isNewName || step.step != .remove && step.step != .rename
        switch name {
        case "host": return "the route decides which server is asked"
        case "content-length", "transfer-encoding", "trailer": return framing
        case "connection", "keep-alive", "te", "upgrade", "http2-settings": return connection
        case _ where name.hasPrefix("proxy-"): return connection
        case "via", "max-forwards", "forwarded": return way
        case _ where name.hasPrefix("x-forwarded-"): return way
        case "expect": return "the gateway answers it itself"
        case "range", "if-range", "if-match", "if-none-match", "if-modified-since",
            "if-unmodified-since":
            return isWritten ? conditions : nil
        case "content-type", "content-encoding":
            return translation.map { "\($0) decides it" }
        case "authorization":
            // A secret does not belong where it is shown.
            return isWritten && !step.isNewName ? "request.authorization is for that" : nil
        default: return nil
        }
    }
}
