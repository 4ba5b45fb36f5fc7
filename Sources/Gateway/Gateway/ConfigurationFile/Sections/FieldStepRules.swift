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
    /// - Parameter reason: Why a step may not change its field, or `nil` if it may.
    func checkFields(_ steps: [NamedStep], reason: (NamedStep) -> String?) {
        for step in steps {
            guard let reason = reason(step) else { continue }
            validation.report(
                step.origin, step.path, "\(quoted(step.name)) cannot be changed here: \(reason)",
                expected: "another field")
        }
    }
}

/// The header fields that `headers` may not change.
enum GatewayField {
    private static let connection = "it concerns a single connection, which the gateway manages"
    private static let framing = "the gateway sets it to match the content that it sends"
    private static let forwarding = "it describes the request's path, which the gateway records"
    private static let conditions =
        "only clients and the cache may request ranges or set conditions"

    /// Why a step may not change its field of a request, or `nil` if it may.
    ///
    /// - Parameter translation: The key that translates the content, or `nil` if none does.
    static func reason(_ step: NamedStep, translation: String?) -> String? {
        let name = step.plainName
        let isWritten = step.writes
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

    /// Why a step may not change its field of a response, or `nil` if it may: what frames a
    /// message, what caches on the way calculate with, and what other messages refer to must stay
    /// what it is. What only tells a client something may be removed, and instructions may be
    /// changed: they change nothing here, because the stored response keeps them.
    ///
    /// - Parameter translation: The key that translates the content, or `nil` if none does.
    static func reason(ofResponse step: NamedStep, translation: String?) -> String? {
        switch step.plainName {
        case "content-length", "transfer-encoding", "trailer": framing
        case "content-encoding", "content-range": "it says how the content is to be read"
        case "connection", "keep-alive", "te", "upgrade", "http2-settings": connection
        case let name where name.hasPrefix("proxy-"): connection
        case "via", "max-forwards": forwarding
        case "host", "expect": "it is a field of requests"
        case "age", "date": "caches calculate with it how old the response is"
        case "etag", "last-modified":
            step.writes ? "the client's conditions are compared with the server's own" : nil
        case "vary":
            step.step == .add
                ? nil : "caches depend on it to keep apart what differs; only add may name it"
        case "cache-status":
            step.writes ? "the gateway writes it" : nil
        case "content-type": translation.map { "\($0) determines it" }
        default: nil
        }
    }
}

extension NamedStep {
    /// The name as programs may see it that treat underscores as hyphens, in lower case.
    fileprivate var plainName: String {
        String(name.lowercasedASCII.map { $0 == "_" ? "-" : $0 })
    }

    /// Whether lines with the name are written.
    fileprivate var writes: Bool { isNewName || step != .remove && step != .rename }
}
