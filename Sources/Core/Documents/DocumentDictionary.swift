/// The members of a dictionary in order, without duplicate keys. Keys are compared byte for byte,
/// so that two encodings of one character are two keys (RFC 8259 §8.3).
public struct DocumentDictionary: Sendable, Equatable, ExpressibleByDictionaryLiteral {
    /// A key and its value.
    public struct Member: Sendable, Equatable {
        /// The key as written, without normalization.
        public var key: String
        /// The value under the key.
        public var value: DocumentValue

        /// Creates a member.
        public init(key: String, value: DocumentValue) {
            self.key = key
            self.value = value
        }

        public static func == (left: Self, right: Self) -> Bool {
            left.key.utf8.elementsEqual(right.key.utf8) && left.value == right.value
        }
    }

    /// The members in order.
    public private(set) var members: [Member]
    /// The index of each key; computed if there are many, to avoid a linear search.
    private var indexByKey: [[UInt8]: Int] = [:]
    private static let walked = 8

    /// Creates an empty dictionary.
    public init() { members = [] }

    /// Creates a dictionary from members that are known to have different keys.
    init(members: [Member]) {
        self.members = members
        indexKeys()
    }

    public init(dictionaryLiteral elements: (String, DocumentValue)...) {
        self.init()
        for (key, value) in elements { self[key] = value }
    }

    private mutating func indexKeys() {
        indexByKey = [:]
        guard members.count > Self.walked else { return }
        for (index, member) in members.enumerated() { indexByKey[Array(member.key.utf8)] = index }
    }

    private func index(of key: String) -> Int? {
        members.count > Self.walked
            ? indexByKey[Array(key.utf8)]
            : members.firstIndex { $0.key.utf8.elementsEqual(key.utf8) }
    }

    /// If set to `nil`, the member is removed; a new member is appended.
    public subscript(key: String) -> DocumentValue? {
        get { index(of: key).map { members[$0].value } }
        set {
            switch (index(of: key), newValue) {
            case (let index?, let value?): members[index].value = value
            case (let index?, nil):
                members.remove(at: index)
                indexKeys()
            case (nil, let value?):
                members.append(Member(key: key, value: value))
                if members.count == Self.walked + 1 {
                    indexKeys()
                } else if members.count > Self.walked {
                    indexByKey[Array(key.utf8)] = members.count - 1
                }
            case (nil, nil): break
            }
        }
    }

    public static func == (left: Self, right: Self) -> Bool { left.members == right.members }
}
