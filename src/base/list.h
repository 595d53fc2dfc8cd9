/*
 * list.h: a circular doubly linked list whose nodes live inside the things that are listed.
 *
 * One struct is both the list and the node: the list is the node that belongs to nothing. An empty
 * list points to itself, so that no operation has a special case, allocates or fails.
 *
 *         list          item a           item b
 *       +------+      +--------+       +--------+
 *   +-->| next |----->|  next  |------>|  next  |---+
 *   |   | prev |<-----|  prev  |<------|  prev  |   |
 *   |   +------+      | fields |       | fields |   |
 *   |                 +--------+       +--------+   |
 *   +-----------------------------------------------+   (and list.prev is b)
 *
 * Invariants:
 *   1. node->next->prev == node and node->prev->next == node, for each node and for the list.
 *   2. A removed node points to itself, as after gni_list_init: removing it again does nothing,
 *      and gni_list_is_empty(node) tells that it is in no list.
 *   3. A list must not be copied or moved while nodes are in it: they point back to it.
 *
 * Threads: no locks here; the owner of the list guards it. The list does not own its items.
 */
#ifndef GNI_BASE_LIST_H
#define GNI_BASE_LIST_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

struct gni_list {
    struct gni_list *next; /* first node of a list; itself when empty */
    struct gni_list *prev; /* last node of a list; itself when empty */
};

/* The struct of type `type` whose field `member` the pointer points to. The pointer is not NULL. */
#define gni_container_of(pointer, type, member) \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/*
 * Visits each node from the front: gni_list_each (node, &cache->blocks) { ... }
 * The loop declares `node`. The body may remove or free the current node, but not the one after
 * it. A node that the body inserts right behind the current one is skipped.
 */
#define gni_list_each(node, list)                                                         \
    for (struct gni_list *node = (list)->next, *node##_next = node->next; node != (list); \
         node = node##_next, node##_next = node->next)

static inline void gni_list_init(struct gni_list *list)
{
    list->next = list;
    list->prev = list;
}

/* Of a list: it has no nodes. Of a node: it is in no list. */
static inline bool gni_list_is_empty(const struct gni_list *list)
{
    gni_assert(list->next->prev == list && list->prev->next == list);
    return list->next == list;
}

/* Between two neighbours; the pushes are the ways to call it. */
static inline void gni_list_link(struct gni_list *prev, struct gni_list *node,
                                 struct gni_list *next)
{
    gni_assert(prev->next == next && next->prev == prev);
    gni_assert(node != prev && node != next);
    node->prev = prev;
    node->next = next;
    prev->next = node;
    next->prev = node;
}

/* The node must be in no list; it need not be initialized. */
static inline void gni_list_push_front(struct gni_list *list, struct gni_list *node)
{
    gni_list_link(list, node, list->next);
}

/* The node must be in no list; it need not be initialized. */
static inline void gni_list_push_back(struct gni_list *list, struct gni_list *node)
{
    gni_list_link(list->prev, node, list);
}

/* Takes an initialized node out of the list it is in, if any. */
static inline void gni_list_remove(struct gni_list *node)
{
    gni_assert(node->next->prev == node && node->prev->next == node);
    node->prev->next = node->next;
    node->next->prev = node->prev;
    gni_list_init(node);
}

/* Appends all nodes of another list, which is empty afterwards. */
static inline void gni_list_append(struct gni_list *list, struct gni_list *other)
{
    if (gni_list_is_empty(other))
        return;
    other->next->prev = list->prev;
    other->prev->next = list;
    list->prev->next = other->next;
    list->prev = other->prev;
    gni_list_init(other);
}

/* Removes the first node and returns it; NULL when there is none. */
static inline struct gni_list *gni_list_pop_front(struct gni_list *list)
{
    if (gni_list_is_empty(list))
        return NULL;
    struct gni_list *node = list->next;
    gni_list_remove(node);
    return node;
}

#endif
