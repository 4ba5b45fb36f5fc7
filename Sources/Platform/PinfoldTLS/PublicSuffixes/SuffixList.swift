import CPublicSuffix
import Trust

/// The system's public suffix list (https://publicsuffix.org): the newer of the one in the package
/// `publicsuffix` and the one built into libpsl. Read once, on first use.
package struct SuffixList: PublicSuffixes {
    /// The list, or `nil` if there is none at all. Immutable.
    private nonisolated(unsafe) static let list: OpaquePointer? = psl_latest(nil)

    package init() {}

    package func kind(of name: String) -> PublicSuffixKind {
        guard let list = Self.list else {
            // Nothing is known: refuse only names that cannot belong to anyone.
            return name.contains(".") ? .none : .unlisted
        }
        if psl_is_public_suffix2(list, name, pinfold_PSL_TYPE_REGISTRY) == 1 { return .listed }
        if psl_is_public_suffix2(list, name, pinfold_PSL_TYPE_COMPANY) == 1 {
            return .privateSuffix
        }
        return name.contains(".") ? .none : .unlisted
    }
}
