/*
 * agreement.hpp: when one of our declarations and one of NVIDIA's describe the same thing.
 *
 * A file made by generate.py includes our header in namespace `ours` and the real one at global
 * scope, so that every type exists twice. Two types agree when they are
 *
 *   1. identical (int, size_t, float ...), or
 *   2. registered as a pair: a structure, enum or opaque tag of ours and the real one of the same
 *      name, whose contents other assertions compare one by one, or
 *   3. built in the same way from types that agree: pointers, const, arrays, functions.
 *
 * Language: C++17. Compiled for its assertions only; nothing here is ever run.
 */
#ifndef GNI_TESTS_AGREEMENT_HPP
#define GNI_TESTS_AGREEMENT_HPP

#include <type_traits>

namespace agreement
{

/* Specialised by generated code for each pair of ours and theirs. */
template <typename Ours, typename Theirs> struct registered : std::false_type {
};

template <typename Ours, typename Theirs>
struct agrees
    : std::bool_constant<std::is_same_v<Ours, Theirs> || registered<Ours, Theirs>::value> {
};

template <typename Ours, typename Theirs>
struct agrees<const Ours, const Theirs> : agrees<Ours, Theirs> {
};

template <typename Ours, typename Theirs> struct agrees<Ours *, Theirs *> : agrees<Ours, Theirs> {
};

template <typename Ours, typename Theirs, decltype(sizeof(0)) length>
struct agrees<Ours[length], Theirs[length]> : agrees<Ours, Theirs> {
};

/* A pack of a different length must give false, not an error that hides the function's name. */
template <typename Ours, typename Theirs> struct arguments_agree : std::false_type {
};

template <typename... Types> struct list {
};

template <> struct arguments_agree<list<>, list<>> : std::true_type {
};

template <typename Ours, typename... OursRest, typename Theirs, typename... TheirsRest>
struct arguments_agree<list<Ours, OursRest...>, list<Theirs, TheirsRest...>>
    : std::bool_constant<agrees<Ours, Theirs>::value &&
                         arguments_agree<list<OursRest...>, list<TheirsRest...>>::value> {
};

template <typename Ours, typename... OursArguments, typename Theirs, typename... TheirsArguments>
struct agrees<Ours(OursArguments...), Theirs(TheirsArguments...)>
    : std::bool_constant<agrees<Ours, Theirs>::value &&
                         arguments_agree<list<OursArguments...>, list<TheirsArguments...>>::value> {
};

template <typename Ours, typename Theirs> constexpr bool agree = agrees<Ours, Theirs>::value;

/* Enums hold different sets of constants, but must be passed and stored in the same way. */
template <typename Ours, typename Theirs> constexpr bool enums_agree()
{
    if constexpr (std::is_enum_v<Ours> && std::is_enum_v<Theirs>)
        return std::is_same_v<std::underlying_type_t<Ours>, std::underlying_type_t<Theirs>>;
    else
        return false;
}

constexpr bool same_text(const char *a, const char *b)
{
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

} // namespace agreement

/* The text of a name after the preprocessor replaced it: cuda.h renames functions by macro. */
#define AGREEMENT_TEXT_OF(name) #name
#define AGREEMENT_TEXT(name)    AGREEMENT_TEXT_OF(name)

#endif
