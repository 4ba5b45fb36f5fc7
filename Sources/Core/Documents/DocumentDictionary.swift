/// The members of a dictionary in their order, no key twice. Keys are compared byte for byte, so
/// that two ways to write one character are two keys (RFC 8259, section 8.3).
public struct DocumentDictionary: Sendable, Equatable, ExpressibleByDictionaryLiteral {
    /// A key and its value.
    public struct Member: Sendable, Equatable {
        /// The key as it is written, without any normalization.
        public var key: String
        /// The value under the key.
        public var value: DocumentValue

        /// A member of these two.
        public init(key: String, value: DocumentValue) {
            self.key = key
            self.value = value
        }

        public static func == (left: Self, right: Self) -> Bool {
            left.key.utf8.elementsEqual(right.key.utf8) && left.value == right.value
        }
    }

    /// The members in their order.
    public private(set) var members: [Member]
    /// Where each key is; made where there are many, so that a search costs no walk.
    private var places: [[UInt8]: Int] = [:]
    private static let walked = 8

    /// A dictionary without members.
    public init() { members = [] }

    /// Members that are known to have different keys.
    init(members: [Member]) {
        self.members = members
        findPlaces()
    }

    public init(dictionaryLiteral elements: (String, DocumentValue)...) {
        self.init()
        for (key, value) in elements { self[key] = value }
    }

    private mutating func findPlaces() {
        places = [:]
        guard members.count > Self.walked else { return }
        for (index, member) in members.enumerated() { places[Array(member.key.utf8)] = index }
    }

    private func place(of key: String) -> Int? {
        members.count > Self.walked
            ? places[Array(key.utf8)]
            : members.firstIndex { $0.key.utf8.elementsEqual(key.utf8) }
    }

    /// Set to nil, a member is taken out; a new one comes last.
    public subscript(key: String) -> DocumentValue? {
        get { place(of: key).map { members[$0].value } }
        set {
            switch (place(of: key), newValue) {
            case (let place?, let value?): members[place].value = value
            case (let place?, nil):
                members.remove(at: place)
                findPlaces()
            case (nil, let value?):
                members.append(Member(key: key, value: value))
                if members.count == Self.walked + 1 {
                    findPlaces()
                } else if members.count > Self.walked {
                    places[Array(key.utf8)] = members.count - 1
                }
            case (nil, nil): break
            }
        }
    }

    public static func == (left: Self, right: Self) -> Bool { left.members == right.members }
}
