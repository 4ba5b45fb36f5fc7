/// Patterns in order of precedence; finds out whether an earlier pattern matches everything that a
/// later one matches.
package struct PatternCoverage<Owner: Sendable>: Sendable {
    private struct Earlier: Sendable {
        var port: UInt16?
        var owner: Owner
    }

    private var exact: [String: [Earlier]] = [:]
    private var oneLabel: [String: [Earlier]] = [:]
    private var anyDepth: [String: [Earlier]] = [:]
    private var everything: Owner?

    package init() {}

    /// Appends a pattern, which has lower precedence than those already added.
    package mutating func insert(_ pattern: HostPattern, owner: Owner) {
        let earlier = Earlier(port: pattern.port, owner: owner)
        switch pattern.reach {
        case .exact(let name): exact[name, default: []].append(earlier)
        case .oneLabel(let name): oneLabel[name, default: []].append(earlier)
        case .anyDepth(let name): anyDepth[name, default: []].append(earlier)
        case .everything: everything = everything ?? owner
        }
    }

    /// The owner of an earlier pattern that matches everything that this one does, so that this one
    /// never applies; `nil` if there is none.
    package func owner(covering pattern: HostPattern) -> Owner? {
        func first(_ candidates: [Earlier]?) -> Owner? {
            candidates?.first { $0.port == nil || $0.port == pattern.port }?.owner
        }
        if let everything { return everything }
        switch pattern.reach {
        case .exact(let name):
            if let owner = first(exact[name]) { return owner }
            if let parent = Self.parent(of: name), let owner = first(oneLabel[parent]) {
                return owner
            }
            return covering(name, first)
        case .oneLabel(let name): return first(oneLabel[name]) ?? covering(name, first)
        case .anyDepth(let name): return covering(name, first)
        case .everything: return nil
        }
    }

    /// Looks up `**.` patterns for the name and for each of its suffixes.
    private func covering(_ name: String, _ first: ([Earlier]?) -> Owner?) -> Owner? {
        var ending: String? = name
        while let domain = ending {
            if let owner = first(anyDepth[domain]) { return owner }
            ending = Self.parent(of: domain)
        }
        return nil
    }

    private static func parent(of name: String) -> String? {
        guard let dot = name.utf8.firstIndex(of: UInt8(ascii: ".")) else { return nil }
        return String(name[name.utf8.index(after: dot)...])
    }
}

extension HostPattern {
    /// Whether some host, at whatever port, matches both patterns.
    package func sharesNames(with other: HostPattern) -> Bool {
        switch (reach, other.reach) {
        case (.exact(let one), .exact(let two)), (.oneLabel(let one), .oneLabel(let two)):
            one == two
        case (.exact(let name), .oneLabel(let parent)), (.oneLabel(let parent), .exact(let name)):
            name.drop(while: { $0 != "." }) == "." + parent
        case (.exact(let name), .anyDepth(let domain)), (.anyDepth(let domain), .exact(let name)):
            name.isWithin(domain)
        case (.oneLabel(let parent), .anyDepth(let domain)),
            (.anyDepth(let domain), .oneLabel(let parent)):
            parent.isWithin(domain) || domain.drop(while: { $0 != "." }) == "." + parent
        case (.anyDepth(let one), .anyDepth(let two)):
            one.isWithin(two) || two.isWithin(one)
        case (.everything, _), (_, .everything): true
        }
    }
}

extension String {
    fileprivate func isWithin(_ domain: String) -> Bool {
        self == domain || hasSuffix("." + domain)
    }
}
