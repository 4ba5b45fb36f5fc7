/// How the names of a form denote the elements of an array.
public enum FormArrayStyle: String, Sendable, Hashable, CaseIterable {
    /// `k[]` for each element, in order, as AFNetworking and Rails write them. A number in brackets
    /// is a key like any other.
    case brackets
    /// `k[0]`, `k[1]` and so on, as Alamofire, jQuery and PHP write them; only this style can
    /// represent where each element of an array of dictionaries or arrays ends.
    ///
    /// Names are read as an array if all numbers from 0 on occur, without leading zeros, in any
    /// order; a number without those before it is an error, so that nobody can allocate memory by
    /// sending a large one. `k[]` is read as with ``brackets``. An element that is not written at
    /// all, such as an empty array, cannot be represented.
    case indices
    /// `k` for each element, in order, as most other services expect (`noBrackets` in Alamofire).
    /// Names are read as with ``brackets``.
    case repeated
}
