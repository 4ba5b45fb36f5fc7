/// The top-level keys, in the order in which they are listed and printed. Reading, printing and the
/// tests of the documentation use these cases.
enum SectionName: String, CaseIterable {
    case include
    case watch
    case workers
    case via
    case listeners
    case admin
    case authentication
    case access
    case parents
    case ways
    case hosts
    case pinsets
    case pins
    case interception
    case tls
    case cache
    case resolver
    case activity
    case limits
    case timeouts
    case errorReplies
    case log
    case tracing
    case policy

    /// Keys that are known but not yet supported.
    static let later: [String] = []
}

extension Section {
    /// The value of a top-level key, or `nil` if it is missing.
    subscript(name: SectionName) -> Field? { self[name.rawValue] }
}
