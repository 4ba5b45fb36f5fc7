import PinfoldConfiguration

/// A place in the configuration, which decides whether a value there may be a secret: the keys
/// under which the value is, its own and those of the mappings around it. Users may give names such
/// as `set` to pinsets: a key alone says nothing.
struct MaskedPlace {
    /// The steps of rules whose values are written into messages.
    private static let steps: Set<String> = [
        FieldStep.set.rawValue, FieldStep.add.rawValue, FieldStep.defaults.rawValue,
    ]
    /// Keys whose value would be a secret. There are none today.
    private static let secrets: Set<String> = ["password", "passphrase", "secret", "token"]

    /// Empty for an element of a list.
    private var key = ""
    private var around = ""
    private var aroundThat = ""
    /// Whether it is in what a step writes.
    private var isInStep = false

    /// The place of the configuration itself, or of an element of a list in it.
    init() {}

    /// The place of a value of this mapping.
    func below(_ name: String) -> MaskedPlace {
        var place = MaskedPlace()
        (place.key, place.around, place.aroundThat) = (name, key, around)
        place.isInStep = isInStep || isStep
        return place
    }

    /// The place of an element of this list.
    var element: MaskedPlace {
        var place = MaskedPlace()
        place.isInStep = isInStep || isStep
        return place
    }

    /// Whether it is the value of a step of `request` or `response`.
    private var isStep: Bool {
        guard aroundThat == "request" || aroundThat == "response" else { return false }
        return switch around {
        case "headers", "query": Self.steps.contains(key)
        case "path": key == "prefixes"
        default: false
        }
    }

    /// Whether a plain value here is a secret by its key, which is a field's name in `rename`. A
    /// mapping of such a name is something that a user has named so.
    private var isSecret: Bool {
        Self.secrets.contains(key) && around != FieldStep.rename.rawValue
    }

    /// A scalar as people may see it.
    ///
    /// - Parameter isPlain: whether it is not in quotes: our own words, such as numbers, are not.
    func shown(_ text: String, isPlain: Bool) -> String {
        if isInStep || isSecret { return MaskedYAML.mask }
        return isPlain ? text : MaskedYAML.withoutSecrets(url: text)
    }
}
