import HTTPCore
import PinfoldConfiguration

/// A name in a step, with its origin.
struct NamedStep {
    let step: FieldStep
    /// The name as written.
    let name: String
    let origin: ConfigurationError.Origin
    let path: String
    /// Whether it is the new name in `rename`.
    var isNewName = false

    /// The names in the steps below a key. Invalid values are left out.
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
    /// Reports names for which steps contradict each other.
    ///
    /// - Parameter steps: All steps below one key.
    func checkConsistency(_ steps: [NamedStep], by grammar: StepGrammar) {
        var first: [String: NamedStep] = [:]
        for step in steps where !step.isNewName {
            guard let earlier = first.updateValue(step, forKey: grammar.folded(step.name)) else {
                continue
            }
            let problem =
                earlier.step == step.step
                ? "appears more than once in \(step.step)"
                : "appears in both \(earlier.step) and \(step.step)"
            validation.report(
                step.origin, step.path, "\(quoted(step.name)) \(problem)",
                expected: "each name once, in a single step")
        }
        for step in steps where step.isNewName {
            guard let other = first[grammar.folded(step.name)] else { continue }
            let problem: String
            switch other.step {
            // These steps also work on renamed fields.
            case .remove, .add, .defaults: continue
            case .rename: problem = "is itself renamed"
            case .set: problem = "is also set, which discards the renamed value"
            }
            // Renamed to itself: reported when the value is read.
            guard other.path != step.path else { continue }
            validation.report(
                step.origin, step.path, "\(quoted(step.name)) \(problem)",
                expected: "another name")
        }
    }

    /// Reports fields that the configuration cannot change.
    ///
    /// - Parameters:
    ///   - translation: The key that translates the content, or `nil` if none does.
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
    private static let connection = "it concerns a single connection, which the gateway manages"
    private static let framing = "the gateway sets it to match the content that it sends"
    private static let forwarding = "it describes the request's path, which the gateway records"
    private static let conditions =
        "only clients and the cache may request ranges or set conditions"

    /// Why a step may not change its field, or `nil` if it may.
    static func reason(_ step: NamedStep, translation: String?) -> String? {
        // Servers commonly treat underscores as hyphens.
        let name = String(step.name.lowercasedASCII.map { $0 == "_" ? "-" : $0 })
        let isWritten = step.isNewName || step.step != .remove && step.step != .rename
        switch name {
        case "host": return "the route determines the server"
        case "content-length", "transfer-encoding", "trailer": return framing
        case "connection", "keep-alive", "te", "upgrade", "http2-settings": return connection
        case _ where name.hasPrefix("proxy-"): return connection
        case "via", "max-forwards", "forwarded": return forwarding
        case _ where name.hasPrefix("x-forwarded-"): return forwarding
        case "expect": return "the gateway answers it itself"
        case "range", "if-range", "if-match", "if-none-match", "if-modified-since",
            "if-unmodified-since":
            return isWritten ? conditions : nil
        case "content-type", "content-encoding":
            return translation.map { "\($0) determines it" }
        case "authorization":
            // Secrets do not belong in values that are printed.
            return isWritten && !step.isNewName ? "use request.authorization" : nil
        default: return nil
        }
    }
}
