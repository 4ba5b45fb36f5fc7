/// The keys of the whole file, in the order in which they are told and printed. Reading, printing
/// and the tests of the documentation go by these cases.
enum SectionName: String, CaseIterable {
    case workers
    case listeners
    case admin
    case access
    case hosts
    case pinsets
    case interception
    case tls
    case cache
    case resolver
    case activity
    case limits
    case timeouts
    case log

    /// Keys that are known but do not work yet.
    static let later: [String] = []
}

extension Section {
    /// What the file says under one of its keys, or nil when it is missing.
    subscript(name: SectionName) -> Field? { self[name.rawValue] }
}
