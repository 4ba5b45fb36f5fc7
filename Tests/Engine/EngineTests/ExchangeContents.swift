@testable import PinfoldEngine

/// What an exchange object holds: the values of its variables and of its parts, by name. Of other
/// objects it is only which they are.
struct ExchangeContents {
    /// The object's own variables, those of its superclass first.
    private(set) var variables: [String] = []
    private(set) var values: [String: String] = [:]

    /// Variables that are kept from one exchange to the next: the heads with their storage, which
    /// parsers overwrite before anything reads them, and the id, for late events.
    static let kept: Set = ["request", "response", "report.id"]

    init(_ exchange: Exchange) {
        var levels = [Mirror(reflecting: exchange)]
        while let next = levels.last?.superclassMirror { levels.append(next) }
        for child in levels.reversed().flatMap(\.children) {
            let name = child.label ?? "?"
            variables.append(name)
            add(child.value, at: name)
        }
    }

    private mutating func add(_ value: Any, at path: String) {
        if Self.kept.contains(path) { return }
        let mirror = Mirror(reflecting: value)
        switch mirror.displayStyle {
        case .class: values[path] = "\(ObjectIdentifier(value as AnyObject))"
        case .struct, .tuple, .enum, .optional:
            if mirror.children.isEmpty { values[path] = "\(value)" }
            for (index, child) in mirror.children.enumerated() {
                add(child.value, at: "\(path).\(child.label ?? "\(index)")")
            }
        default: values[path] = "\(value)"
        }
    }

    /// What differs in another object: the names, each with its value here.
    func differences(from other: ExchangeContents) -> [String] {
        Set(values.keys).union(other.values.keys).sorted()
            .filter { values[$0] != other.values[$0] }
            .map { "\($0): \(values[$0] ?? "absent")" }
    }
}

extension Exchange {
    /// What is left in an object of the exchanges that it was used for.
    var remains: [String] {
        ExchangeContents(self).differences(
            from: ExchangeContents(Exchange(environment: environment)))
    }
}
